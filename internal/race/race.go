// Package race tells tests whether the race detector watches them. It makes code five to
// twenty times slower and finds nothing where one goroutine computes, so that tests of
// plain computation take fewer seeds and rows under it. `make test` runs them in full, without
// the detector, `make test-race` with it.
package race

// Fewer returns how much a test does: full, or under the race detector few.
func Fewer[N ~int | ~int64 | ~uint64](full, few N) N {
	if Enabled {
		return few
	}
	return full
}
