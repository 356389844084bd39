package expr

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// A gtidSet is a set of transactions: ranges of numbers for each source, in the order of the sources' ids.
type gtidSet []gtidSource

type gtidSource struct {
	id     uuid
	ranges []gtidRange // sorted, apart from each other
}

// A gtidRange holds the numbers from low to below high.
type gtidRange struct{ low, high int64 }

func errMalformedGTIDs(s []byte) *sqlerr.Error {
	return sqlerr.New(sqlerr.MalformedGTIDSetSpecification, printable(s))
}

// What a range and a source take while sets are read and subtracted.
const (
	rangeBytes  = 64
	sourceBytes = 128
)

// parseGTIDSet reads uuid:n-m:k,uuid:..; space and empty parts do not count. What it takes is counted into held.
// Errors: 1772, 3170, those of an interrupted statement.
func parseGTIDSet(held *holding, s []byte) (gtidSet, error) {
	ranges := map[uuid][]gtidRange{}
	var order []uuid
	for part := range bytes.SplitSeq(s, []byte{','}) {
		if err := held.x.Worked(len(part) + 1); err != nil {
			return nil, err
		}
		part = bytes.TrimSpace(part)
		if len(part) == 0 {
			continue
		}
		name, numbers, some := bytes.Cut(part, []byte{':'})
		id, ok := parseUUID(bytes.TrimSpace(name))
		if !ok || !some {
			return nil, errMalformedGTIDs(s)
		}
		list, known := ranges[id]
		if !known {
			order = append(order, id)
			if err := held.add(sourceBytes); err != nil {
				return nil, err
			}
		}
		for f := range bytes.SplitSeq(numbers, []byte{':'}) {
			r, ok := parseGTIDRange(f)
			if !ok {
				return nil, errMalformedGTIDs(s)
			}
			if err := held.add(rangeBytes); err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		ranges[id] = list
	}
	slices.SortFunc(order, func(a, b uuid) int { return bytes.Compare(a[:], b[:]) })
	var set gtidSet
	for _, id := range order {
		r, err := joinRanges(held.x, ranges[id])
		if err != nil {
			return nil, err
		}
		if len(r) > 0 {
			set = append(set, gtidSource{id, r})
		}
	}
	return set, nil
}

// parseGTIDRange reads n or n-m; a range whose end lies before its start is empty.
func parseGTIDRange(s []byte) (r gtidRange, ok bool) {
	first, last, isRange := bytes.Cut(s, []byte{'-'})
	low, err := strconv.ParseInt(string(bytes.TrimSpace(first)), 10, 64)
	if err != nil || low < 1 {
		return r, false
	}
	high := low
	if isRange {
		high, err = strconv.ParseInt(string(bytes.TrimSpace(last)), 10, 64)
		if err != nil || high < 0 {
			return r, false
		}
	}
	if high == 1<<63-1 {
		return r, false
	}
	return gtidRange{low, max(high+1, low)}, true
}

// joinRanges puts ranges in order and joins those that touch, in their memory.
func joinRanges(x *Context, list []gtidRange) ([]gtidRange, error) {
	var err error
	order := func(a, b gtidRange) int { return cmp.Compare(a.low, b.low) }
	if !slices.IsSortedFunc(list, order) {
		err = sortWorking(x, list, rangeBytes, order)
	}
	out := list[:0]
	for _, r := range list {
		switch n := len(out); {
		case r.low == r.high:
		case n > 0 && r.low <= out[n-1].high:
			out[n-1].high = max(out[n-1].high, r.high)
		default:
			out = append(out, r)
		}
	}
	return out, err
}

// subtract returns the transactions of s that are not in o. Both are in order: it takes one way through them.
func (s gtidSet) subtract(o gtidSet) gtidSet {
	var out gtidSet
	for _, src := range s {
		for len(o) > 0 && bytes.Compare(o[0].id[:], src.id[:]) < 0 {
			o = o[1:]
		}
		left := src.ranges
		if len(o) > 0 && o[0].id == src.id {
			left = subtractRanges(left, o[0].ranges)
		}
		if len(left) > 0 {
			out = append(out, gtidSource{src.id, left})
		}
	}
	return out
}

func subtractRanges(list, minus []gtidRange) []gtidRange {
	var out []gtidRange
	for _, r := range list {
		for len(minus) > 0 && minus[0].high <= r.low {
			minus = minus[1:]
		}
		for _, m := range minus {
			if m.low >= r.high {
				break
			}
			if m.low > r.low {
				out = append(out, gtidRange{r.low, m.low})
			}
			if r.low = min(m.high, r.high); r.low == r.high {
				break
			}
		}
		if r.low < r.high {
			out = append(out, r)
		}
	}
	return out
}

// GreatestGTID reads a set of transactions and returns the greatest number of those with the source's id, 0 without any.
// others says that it has some of another source too. Error: 1772.
func GreatestGTID(set string, source [16]byte) (n uint64, others bool, err error) {
	list, err := parseGTIDSet(&holding{x: new(Context)}, []byte(set))
	for _, src := range list {
		if src.id == source {
			n = uint64(src.ranges[len(src.ranges)-1].high - 1)
		} else {
			others = true
		}
	}
	return n, others, err
}

// textBound is a length that the text of a set does not exceed.
func (s gtidSet) textBound() (n int) {
	const id = 36 + 2
	var digits [20]byte
	for _, src := range s {
		n += id
		for _, r := range src.ranges {
			n += 2 * (1 + len(strconv.AppendInt(digits[:0], r.high, 10)))
		}
	}
	return n
}

func (s gtidSet) appendText(dst []byte) []byte {
	for i, src := range s {
		if i > 0 {
			dst = append(dst, ",\n"...)
		}
		dst = src.id.appendText(dst)
		for _, r := range src.ranges {
			dst = strconv.AppendInt(append(dst, ':'), r.low, 10)
			if r.high-1 > r.low {
				dst = strconv.AppendInt(append(dst, '-'), r.high-1, 10)
			}
		}
	}
	return dst
}
