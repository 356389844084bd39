package expr

import (
	"bytes"
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

// parseGTIDSet reads uuid:n-m:k,uuid:..; space and empty parts do not count.
func parseGTIDSet(s []byte) (gtidSet, error) {
	ranges := map[uuid][]gtidRange{}
	var order []uuid
	for _, part := range bytes.Split(s, []byte{','}) {
		part = bytes.TrimSpace(part)
		if len(part) == 0 {
			continue
		}
		fields := bytes.Split(part, []byte{':'})
		id, ok := parseUUID(bytes.TrimSpace(fields[0]))
		if !ok || len(fields) < 2 {
			return nil, errMalformedGTIDs(s)
		}
		if _, known := ranges[id]; !known {
			order = append(order, id)
		}
		for _, f := range fields[1:] {
			r, ok := parseGTIDRange(f)
			if !ok {
				return nil, errMalformedGTIDs(s)
			}
			ranges[id] = append(ranges[id], r)
		}
	}
	slices.SortFunc(order, func(a, b uuid) int { return bytes.Compare(a[:], b[:]) })
	var set gtidSet
	for _, id := range order {
		if r := joinRanges(ranges[id]); len(r) > 0 {
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

func joinRanges(list []gtidRange) []gtidRange {
	slices.SortFunc(list, func(a, b gtidRange) int {
		switch {
		case a.low < b.low:
			return -1
		case a.low > b.low:
			return 1
		}
		return 0
	})
	var out []gtidRange
	for _, r := range list {
		switch n := len(out); {
		case r.low == r.high:
		case n > 0 && r.low <= out[n-1].high:
			out[n-1].high = max(out[n-1].high, r.high)
		default:
			out = append(out, r)
		}
	}
	return out
}

// subtract returns the transactions of s that are not in o.
func (s gtidSet) subtract(o gtidSet) gtidSet {
	var out gtidSet
	for _, src := range s {
		left := src.ranges
		for _, other := range o {
			if other.id == src.id {
				left = subtractRanges(left, other.ranges)
			}
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
		for _, m := range minus {
			if m.high <= r.low || m.low >= r.high {
				continue
			}
			if m.low > r.low {
				out = append(out, gtidRange{r.low, m.low})
			}
			r.low = min(m.high, r.high)
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
	list, err := parseGTIDSet([]byte(set))
	for _, src := range list {
		if src.id == source {
			n = uint64(src.ranges[len(src.ranges)-1].high - 1)
		} else {
			others = true
		}
	}
	return n, others, err
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
