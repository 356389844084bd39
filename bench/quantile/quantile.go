// Package quantile finds quantiles of what was measured.
//
//	p99 := quantile.Of(latencies, 0.99)
package quantile

import "slices"

// Of is the value at a share q of the values in order; 0 of none. The values stay as they are.
func Of[T ~int64 | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
