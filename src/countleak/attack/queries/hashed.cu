// Products with hashed rows (hashing.py), made on binary tensor cores and never stored.
//
// A word of 32 bits, hash(row_key ^ column_key), is a tile of 8 rows x 4 columns. Its bits are multiplied as they are
// with the bit planes of a vector of 16-bit whole numbers. The planes are laid out so that a bit meets the entry of
// its own row or column, once for each of the SLOTS outputs that share the word and 0 for the others: 8 rows where the
// vector has an entry per column (Q x), 4 columns where it has one per row (Q'y). Sums are whole numbers, and exact.
//
// The host defines SLOTS, and WARPGROUP on chips that have wgmma (compute capability 9.0).
typedef unsigned int u32;
typedef unsigned long long u64;

#define PLANES 16                   // bits of an entry, the last of them its sign
#define N (SLOTS * PLANES)          // columns of the matrix of planes
#define WORDS 8                     // words of one multiplication: 256 bits
#define STEPS 8                     // multiplications of a stage
#define STAGES 3                    // stages under way at a time
#define WARPS 8                     // of a block; each takes the words of 16 keys
#define KEYS (WORDS * STEPS)
#define BYTES (N * 32 * STEPS)      // planes of a stage

__device__ __forceinline__ u32 word(u32 h) {
    h *= 0x7feb352du;
    h ^= h >> 15;
    h *= 0x735a2d97u;
    return h ^ (h >> 16);
}

__device__ __forceinline__ void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

#define D8(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), "+r"(d[i + 6]), "+r"(d[i + 7])

// d += (16 words in each of 8 places, per warp) x (the planes that lie at `at` in shared memory).
__device__ __forceinline__ void multiply(int (&d)[N / 2], const u32 (&a)[4], u32 at) {
#if defined(WARPGROUP)
    // Not swizzled: blocks of 8 columns x 128 bits, 128 bytes apart along the bits, 256 along the columns.
    u64 planes = (u64)(at >> 4 & 0x3FFF) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#if SLOTS == 8
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
                 "{%64,%65,%66,%67}, %68, 1;"
                 : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(planes));
#else
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},"
                 "{%32,%33,%34,%35}, %36, 1;"
                 : D8(0), D8(8), D8(16), D8(24)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(planes));
#endif
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
    int lane = threadIdx.x & 31;
    u32 from = at + (lane >> 2) * 16 + (lane & 3) * 4;
    #pragma unroll
    for (int j = 0; j < N / 8; ++j) {
        u32 b0, b1;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b0) : "r"(from + 256 * j));
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b1) : "r"(from + 256 * j + 128));
        asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+r"(d[4 * j]), "+r"(d[4 * j + 1]), "+r"(d[4 * j + 2]), "+r"(d[4 * j + 3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
#endif
}

// out[i * SLOTS + s] += the sum of the vector's entries that the words of outer[i] hold for slot s. A block takes
// 16 * WARPS outer keys and up to `most` of the `stages` stages of inner keys.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)
product(const u32* __restrict__ outer, const u32* __restrict__ inner, const char* __restrict__ planes, u64* __restrict__ out,
        int stages, int most) {
    extern __shared__ __align__(128) char B[];
    __shared__ __align__(16) u32 K[STAGES][KEYS];
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    int first = blockIdx.y * most, count = min(most, stages - first);
    int i = blockIdx.x * 16 * WARPS + (threadIdx.x >> 5) * 16 + g;
    u32 r0 = outer[i], r1 = outer[i + 8];
    const char* from = planes + (size_t)first * BYTES;
    const u32* keys = inner + (size_t)first * KEYS;
    u32 base = (u32)__cvta_generic_to_shared(B), key_base = (u32)__cvta_generic_to_shared(K);
    int d[N / 2] = {};

    auto fetch = [&](int stage) {
        if (stage < count) {
            int slot = stage % STAGES;
            for (int at = threadIdx.x * 16; at < BYTES; at += 32 * WARPS * 16)
                copy16(base + slot * BYTES + at, from + (size_t)stage * BYTES + at);
            if (threadIdx.x < KEYS / 4)
                copy16(key_base + (slot * KEYS + threadIdx.x * 4) * 4, keys + stage * KEYS + threadIdx.x * 4);
        }
        asm volatile("cp.async.commit_group;");
    };
    for (int stage = 0; stage < STAGES - 1; ++stage) fetch(stage);
    for (int stage = 0; stage < count; ++stage) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
#if defined(WARPGROUP)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
        fetch(stage + STAGES - 1);
        int slot = stage % STAGES;
        u32 a[STEPS][4];
        #pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            u32 k0 = K[slot][WORDS * s + t], k1 = K[slot][WORDS * s + 4 + t];
            a[s][0] = word(r0 ^ k0);
            a[s][1] = word(r1 ^ k0);
            a[s][2] = word(r0 ^ k1);
            a[s][3] = word(r1 ^ k1);
            multiply(d, a[s], base + slot * BYTES + s * N * 32);
        }
#if defined(WARPGROUP)
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    }
    #pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            long long sum = 0;
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                int plane = 8 * (e >> 1) + 2 * t + (e & 1);
                long long part = (long long)d[(2 * s + (e >> 1)) * 4 + 2 * half + (e & 1)] << plane;
                sum += plane == PLANES - 1 ? -part : part;
            }
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            if (t == 0) atomicAdd(out + (size_t)(i + 8 * half) * SLOTS + s, (u64)sum);
        }
    }
}

// The bit planes of v, 4 or 8 entries to a key, as `product` reads them; a thread makes one word of them.
extern "C" __global__ void spread(const short* __restrict__ v, u32* __restrict__ planes, u64 words) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= words) return;
    int column = (int)((at >> 6) % (N / 8)) * 8 + (at >> 2 & 7);
    u64 key = (at >> 6) / (N / 8) * WORDS + (at >> 5 & 1) * 4 + (at & 3);
    int s = column / PLANES, plane = column % PLANES;
    u32 bits = 0;
#if SLOTS == 8
    for (int c = 0; c < 4; ++c) bits |= (u32)(v[4 * key + c] >> plane & 1) << (8 * c + s);
#else
    for (int r = 0; r < 8; ++r) bits |= (u32)(v[8 * key + r] >> plane & 1) << (8 * s + r);
#endif
    planes[at] = bits;
}
