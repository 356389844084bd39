package expr

import "slices"

// reserve returns a buffer with room for n more bytes, none of which are beyond limit, and accounts for what it takes
// if that is large. The bytes that limit does not allow for are refused: ok is false. Error: 3170, like
// [Context.Large].
func (x *Context) reserve(dst []byte, n, limit int) (out []byte, ok bool, err error) {
	size := len(dst) + n
	switch {
	case size > limit:
		return dst, false, nil
	case size <= cap(dst):
		return dst, true, nil
	}
	size = max(size, min(2*cap(dst), limit))
	ahead := min(size, x.ahead)
	x.ahead -= ahead
	if err := x.Large(size - ahead); err != nil {
		return dst, false, err
	}
	return append(make([]byte, 0, size), dst...), true, nil
}

// counted is what is counted of so many bytes that are given back soon: small ones are within what each session has.
func counted(bytes int64) int64 {
	if bytes < countedText {
		return 0
	}
	return bytes
}

// holding counts memory that a call takes little by little and gives back when it is done.
type holding struct {
	x          *Context
	held, more int64
}

// add counts so many bytes more, and their work. Errors: 3170, those of an interrupted statement.
func (h *holding) add(bytes int) error {
	if h.more += int64(bytes); h.more < countedText {
		return nil
	}
	err := h.x.Account(h.more)
	if err == nil {
		h.held += h.more
		err = h.x.Worked(int(h.more))
	}
	h.more = 0
	return err
}

// done gives all of it back.
func (h *holding) done() {
	if h.held > 0 {
		_ = h.x.Account(-h.held) // what is given back is never refused
	}
	h.held, h.more = 0, 0
}

// sortWorking sorts a list, in which equal items keep their order, and counts each comparison as so much work. Errors: those of an
// interrupted statement; the order is none then.
func sortWorking[T any](x *Context, list []T, work int, order func(a, b T) int) (err error) {
	slices.SortStableFunc(list, func(a, b T) int {
		if err == nil {
			err = x.Worked(work)
		}
		if err != nil {
			return 0
		}
		return order(a, b)
	})
	return err
}

// foldBytes is how much memory constants may take while they are folded. It is as much as reading the longest text that
// is folded takes; what needs more is left to the execution, which counts it.
const foldBytes = 64 << 20

// foldMemory counts what folding takes.
type foldMemory struct{ bytes int64 }

func (m *foldMemory) hold(delta int64) error {
	if m.bytes += delta; m.bytes > foldBytes && delta > 0 {
		m.bytes -= delta
		return errLongFold
	}
	return nil
}
