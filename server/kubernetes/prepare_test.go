package kubernetes

import "testing"

func TestQuantity(t *testing.T) {
	for text, want := range map[string]int64{"2Gi": 2 << 30, "1.5Gi": 3 << 29, "2G": 2e9, "512Mi": 512 << 20, "1e9": 1e9, "2.147483648e+09": 2 << 30,
		"1024": 1024, "128974848000m": 128974848, "1k": 1000, "": 0, "0": 0, "-1Gi": 0, "x": 0, "1Zi": 0, "NaN": 0, "99Ei": 0} {
		if got, err := Quantity(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
