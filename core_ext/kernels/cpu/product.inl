/// What the three families of products share.
namespace strata::cpu {
namespace {

/// What one product call covers: outputs [begin, end) for its own rows.
struct Product {
    const uint8_t* weights;  // row 0's blocks, rows row_bytes apart
    size_t row_bytes;
    int n_in;
    const uint8_t* x;  // the group's first row
    size_t x_stride;   // bytes
    int begin, end;
    float* y;  // the group's first row
    size_t y_stride;
};

/// Weights are asked for, into the second-level cache, this far ahead: the hardware's prefetcher stops at
/// each page.
constexpr size_t AHEAD_BYTES = 2048;

}  // namespace
}  // namespace strata::cpu
