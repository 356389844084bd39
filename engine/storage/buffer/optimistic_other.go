//go:build race || !amd64

package buffer

// OptimisticReads says whether pages may be read without a latch and validated
// afterwards. See the package comment.
const OptimisticReads = false
