package file

import (
	"bytes"
	"testing"
)

// Where the file system cannot reserve space, zeros are written, past the end only.
func TestZeroFill(t *testing.T) {
	for _, direct := range []bool{false, true} {
		f, err := OS(t.TempDir()).Open("f", OpenOptions{Create: true, Direct: direct})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("abc"), 0); err != nil {
			t.Fatal(err)
		}
		const end = 600_001
		if err := f.(*osFile).zeroFill(3, end); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, end)
		if n, err := f.ReadAt(got, 0); n != end || err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(got, append([]byte("abc"), make([]byte, end-3)...)) {
			t.Fatal("content is wrong")
		}
	}
}
