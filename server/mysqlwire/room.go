package mysqlwire

import (
	"slices"

	"github.com/triremedb/trireme/engine/session"
)

// rowRoom is asked between the values of a row that may be long: a row may be as long as a packet, and its memory is
// that of the statements. Thousands of columns may show one long value each, of which the packet's length would be
// known too late.
type rowRoom struct {
	sess  Session
	start int   // where the row begins
	most  int64 // bytes that it may have
	other int64 // bytes of memory besides that of the buffer
	held  int64 // bytes that are accounted for
}

// before makes room for a value of n bytes, if it is long. Errors: errTooLarge, those of Session.Hold.
func (r *rowRoom) before(b []byte, f *field, n int) ([]byte, error) {
	if n <= keepBuffer {
		return b, nil
	}
	if f.encoding != textBytes {
		// A document's text, or that of another character set, has another length: about this.
		return b, r.account(int64(cap(b)) + 2*int64(n))
	}
	return r.grow(b, n, 9)
}

// grow makes room for n bytes of strings, if they are many, and a little more. Errors: as of before.
func (r *rowRoom) grow(b []byte, n, more int) ([]byte, error) {
	switch {
	case int64(len(b)-r.start+n) > r.most:
		return b, errTooLarge
	case n <= keepBuffer || cap(b)-len(b) >= n+more:
		return b, nil
	}
	need := n + more + (n/maxChunk+2)*headerSize
	if err := r.account(int64(len(b) + need)); err != nil {
		return b, err
	}
	return slices.Grow(b, need), nil
}

// after looks at the row with one value more. Errors: as of before.
func (r *rowRoom) after(b, scratch []byte) error {
	if int64(len(b)-r.start) > r.most {
		return errTooLarge
	}
	return r.account(int64(cap(b)) + int64(cap(scratch)))
}

// account accounts for so many bytes of buffers, from maxBuffer on.
func (r *rowRoom) account(n int64) error {
	if n += r.other; n <= maxBuffer || n <= r.held {
		return nil
	}
	if err := r.sess.Hold(n - r.held); err != nil {
		return err
	}
	r.held = n
	return nil
}

// free gives back what is accounted for.
func (r *rowRoom) free() {
	if r.held > 0 {
		_ = r.sess.Hold(-r.held) // what is given back is never refused
		r.held = 0
	}
}

// mayBeLong reports whether rows without a long string may be long.
func mayBeLong(cols []session.ResultColumn) bool {
	n := 0
	for i := range cols {
		if n += cols[i].Type.LongestText(); n > keepBuffer {
			return true
		}
	}
	return false
}
