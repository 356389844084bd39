package log

import "sort"

const (
	// pointSpacing is how far apart, in bytes, known boundaries in a file are at
	// least, and pointsMax how many a file has at most: then every other one goes.
	pointSpacing = 64 << 10
	pointsMax    = 2048
	// indexedMax is how many closed files keep their points.
	indexedMax = 16
	cursorsMax = 16
)

// points are some of the boundaries in a file, ascending. What lies between is found
// by reading on from the one before.
type points struct {
	list    []place
	spacing int64
	used    uint64 // when they were last of use, to drop those of other files first
}

// add takes p in if it is the newest one and far enough from the last.
func (s *points) add(p place) {
	if s.spacing == 0 {
		s.spacing = pointSpacing
	}
	at := int64(headerSize)
	if n := len(s.list); n > 0 {
		at = s.list[n-1].offset
	}
	if p.offset < at+s.spacing {
		return
	}
	if len(s.list) == pointsMax {
		for i := range pointsMax / 2 {
			s.list[i] = s.list[2*i+1]
		}
		s.list = s.list[:pointsMax/2]
		s.spacing *= 2
		if p.offset < s.list[len(s.list)-1].offset+s.spacing {
			return
		}
	}
	s.list = append(s.list, p)
}

// truncate drops the points from entry index on.
func (s *points) truncate(index uint64) {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].index >= index })
	s.list = s.list[:i]
}

// last is the last point that is not behind what is looked for, or start.
func (s *points) last(start place, behind func(place) bool) place {
	i := sort.Search(len(s.list), func(i int) bool { return behind(s.list[i]) })
	if i == 0 {
		return start
	}
	return s.list[i-1]
}
