package log

import (
	"fmt"
	"sort"
)

// Position is where the record of entry index begins, from FirstIndex to LastIndex +
// 1; that of an entry which will open a new file is still the end of the old one.
// Error: ErrCompacted, ErrUnavailable.
func (l *Log) Position(index uint64) (Position, error) {
	p, err := l.locate(index)
	return Position{p.file, p.offset}, err
}

// Find returns the entry that begins at a position; at the end of a file it is the
// one that comes next. Errors: ErrBadPosition; ErrCompacted for a file that was
// purged, ErrUnavailable for one that is not there yet.
func (l *Log) Find(pos Position) (index uint64, err error) {
	for {
		l.mu.RLock()
		s := l.segment(pos.File)
		if s == nil {
			err := fmt.Errorf("%w: %s", ErrUnavailable, pos)
			if pos.File < l.files[0].number {
				err = fmt.Errorf("%w: %s was purged, the first file is %s", ErrCompacted, pos, l.files[0].name())
			}
			l.mu.RUnlock()
			return 0, err
		}
		taken, c := l.taken, *s
		l.mu.RUnlock()
		switch {
		case pos.Offset == c.end:
			return c.next, nil
		case pos.Offset < headerSize || pos.Offset > c.end:
			return 0, fmt.Errorf("%w: %s", ErrBadPosition, pos)
		}
		p, err := l.find(taken, &c, func(p place) bool { return p.offset > pos.Offset })
		if err == nil && p.offset != pos.Offset {
			err = fmt.Errorf("%w: %s", ErrBadPosition, pos)
		}
		if again, err := l.doubt(taken, err); !again {
			return p.index, err
		}
	}
}

// IndexOf returns the entry that holds transaction number. Errors: ErrCompacted if it
// lies before the first entry, ErrUnavailable behind the last.
func (l *Log) IndexOf(number uint64) (index uint64, err error) {
	for {
		l.mu.RLock()
		if number <= l.files[0].numberBefore || number > l.tail.number {
			err := fmt.Errorf("%w: transaction %d, the last is %d", ErrUnavailable, number, l.tail.number)
			if number <= l.files[0].numberBefore {
				err = fmt.Errorf("%w: transaction %d, the first is %d", ErrCompacted, number, l.files[0].numberBefore+1)
			}
			l.mu.RUnlock()
			return 0, err
		}
		if c := &l.cache; c.next > c.first && c.at(c.first).number < number {
			// The last entry in memory before which number had not come.
			n := sort.Search(int(c.next-c.first), func(i int) bool { return c.at(c.first+uint64(i)).number >= number })
			index = c.first + uint64(n) - 1
			l.mu.RUnlock()
			return index, nil
		}
		i := sort.Search(len(l.files), func(i int) bool { return l.files[i].numberBefore >= number })
		taken, s := l.taken, *l.files[i-1]
		l.mu.RUnlock()
		p, err := l.find(taken, &s, func(p place) bool { return p.number >= number })
		if again, err := l.doubt(taken, err); !again {
			return p.index, err
		}
	}
}
