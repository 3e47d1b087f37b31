/// y[r, o] = sum_i w[o, i] x[r, i]. A family's `product<R>` takes R rows and a range of outputs, from weights
/// that it unpacks once. Here rows are cut into such groups, and, where there are several groups, outputs
/// into pieces whose weights stay in the first-level cache from one group to the next.
namespace strata::cpu {
namespace {

constexpr size_t PIECE_BYTES = 16384;

template <typename Family, int R>
inline void product_of(int rows, const Product& a) {
    if (rows == R) return Family::template product<R>(a);
    if constexpr (R > 1) product_of<Family, R - 1>(rows, a);
}

template <typename Family>
void groups(Product a, int rows) {
    constexpr int ROWS = Family::ROWS;
    const int begin = a.begin, end = a.end;
    size_t piece = PIECE_BYTES / (a.row_bytes ? a.row_bytes : 1) + 1;
    if (rows <= ROWS) piece = static_cast<size_t>(end - begin);
    const Product whole = a;
    for (size_t o = static_cast<size_t>(begin); o < static_cast<size_t>(end); o += piece) {
        a.begin = static_cast<int>(o);
        a.end = o + piece < static_cast<size_t>(end) ? static_cast<int>(o + piece) : end;
        for (int r = 0; r < rows; r += ROWS) {
            a.x = whole.x + static_cast<size_t>(r) * a.x_stride;
            a.y = whole.y + static_cast<size_t>(r) * a.y_stride;
            product_of<Family, ROWS>(rows - r < ROWS ? rows - r : ROWS, a);
        }
    }
}

void matmul(const Weight& w, const void* x, size_t x_stride, int rows, int out_begin, int out_end, float* y,
            size_t y_stride) {
    if (rows <= 0 || out_begin >= out_end) return;
    const Product a{static_cast<const uint8_t*>(w.data),
                    w.row_bytes,
                    w.n_in,
                    static_cast<const uint8_t*>(x),
                    x_stride,
                    out_begin,
                    out_end,
                    y,
                    y_stride};
    switch (w.type) {
        case Type::F32:
            return groups<Floats<F32Weights>>(a, rows);
        case Type::F16:
            return groups<Floats<F16Weights>>(a, rows);
        case Type::BF16:
            return groups<Floats<BF16Weights>>(a, rows);
        case Type::Q4_0:
            return groups<Blocks32<Q4_0Blocks>>(a, rows);
        case Type::Q4_1:
            return groups<Blocks32<Q4_1Blocks>>(a, rows);
        case Type::Q5_0:
            return groups<Blocks32<Q5_0Blocks>>(a, rows);
        case Type::Q5_1:
            return groups<Blocks32<Q5_1Blocks>>(a, rows);
        case Type::Q8_0:
            return groups<Blocks32<Q8_0Blocks>>(a, rows);
        case Type::Q4_K:
            return groups<Blocks256<Q4_KBlocks>>(a, rows);
        case Type::Q5_K:
            return groups<Blocks256<Q5_KBlocks>>(a, rows);
        case Type::Q6_K:
            return groups<Blocks256<Q6_KBlocks>>(a, rows);
        case Type::Q2_K:
            return groups<Blocks256<Q2_KBlocks>>(a, rows);
        case Type::Q3_K:
            return groups<Blocks256<Q3_KBlocks>>(a, rows);
        case Type::IQ4_NL:
            return groups<Blocks32<IQ4_NLBlocks>>(a, rows);
        case Type::IQ4_XS:
            return groups<Blocks256<IQ4_XSBlocks>>(a, rows);
        case Type::IQ3_S:
            return groups<Blocks256<IQ3_SBlocks>>(a, rows);
        case Type::IQ3_XXS:
            return groups<Blocks256<IQ3_XXSBlocks>>(a, rows);
        default:  // no kernels: loaders make copies
            return;
    }
}

}  // namespace
}  // namespace strata::cpu