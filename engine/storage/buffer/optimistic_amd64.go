//go:build !race

package buffer

// OptimisticReads says whether pages may be read without a latch and validated
// afterwards. See the package comment.
const OptimisticReads = true
