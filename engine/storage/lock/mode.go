package lock

// Mode is what a lock allows and covers. The Table modes are for tables, the
// others for (index, key).
type Mode uint8

// Modes. Record is the entry alone (REC_NOT_GAP), Gap the interval before it
// alone, NextKey both. InsertIntention is asked for on the gap of the entry
// that will follow the inserted one.
const (
	TableIS Mode = iota
	TableIX
	TableS
	TableX
	TableAutoInc
	RecordS
	RecordX
	GapS
	GapX
	NextKeyS
	NextKeyX
	InsertIntention
	modeCount
)

const tableModes = int(TableAutoInc) + 1

type modeSet uint16

func setOf(modes ...Mode) modeSet {
	var s modeSet
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

func (s modeSet) has(m Mode) bool { return s>>m&1 != 0 }

// blockers gives for each requested mode the modes that it has to wait for when
// another owner has them. Locks on gaps alone wait for nothing; an insert
// intention waits for locks that cover the gap; nothing waits for one.
var blockers = [modeCount]modeSet{
	TableIS:         setOf(TableX),
	TableIX:         setOf(TableS, TableX),
	TableS:          setOf(TableIX, TableX, TableAutoInc),
	TableX:          setOf(TableIS, TableIX, TableS, TableX, TableAutoInc),
	TableAutoInc:    setOf(TableS, TableX, TableAutoInc),
	RecordS:         setOf(RecordX, NextKeyX),
	RecordX:         setOf(RecordS, RecordX, NextKeyS, NextKeyX),
	GapS:            0,
	GapX:            0,
	NextKeyS:        setOf(RecordX, NextKeyX),
	NextKeyX:        setOf(RecordS, RecordX, NextKeyS, NextKeyX),
	InsertIntention: setOf(GapS, GapX, NextKeyS, NextKeyX),
}

// covering gives for each mode the held modes that make asking for it again
// unnecessary. An insert intention is checked anew each time.
var covering = [modeCount]modeSet{
	TableIS:      setOf(TableIS, TableIX, TableS, TableX),
	TableIX:      setOf(TableIX, TableX),
	TableS:       setOf(TableS, TableX),
	TableX:       setOf(TableX),
	TableAutoInc: setOf(TableX, TableAutoInc),
	RecordS:      setOf(RecordS, RecordX, NextKeyS, NextKeyX),
	RecordX:      setOf(RecordX, NextKeyX),
	GapS:         setOf(GapS, GapX, NextKeyS, NextKeyX),
	GapX:         setOf(GapX, NextKeyX),
	NextKeyS:     setOf(NextKeyS, NextKeyX),
	NextKeyX:     setOf(NextKeyX),
}

var (
	gapModes    = setOf(GapS, GapX, NextKeyS, NextKeyX)
	recordModes = setOf(RecordS, RecordX, NextKeyS, NextKeyX)
)

// Conflicts reports whether a request for m has to wait for a lock in mode
// other that another owner has on the same table or key.
func (m Mode) Conflicts(other Mode) bool { return blockers[m].has(other) }

// Covers reports whether holding m makes a request for other unnecessary.
func (m Mode) Covers(other Mode) bool { return covering[other].has(m) }

// OnRecord reports whether m covers the entry itself, and not only the gap before it.
func (m Mode) OnRecord() bool { return recordModes.has(m) }

// IsTable reports whether m is a mode of table locks.
func (m Mode) IsTable() bool { return m <= TableAutoInc }

// gap is the gap lock that keeps m's strength.
func (m Mode) gap() Mode {
	if m == RecordS || m == GapS || m == NextKeyS {
		return GapS
	}
	return GapX
}

// onSupremum is m as it is kept on the supremum, which is a gap and no entry.
func (m Mode) onSupremum() Mode {
	switch m {
	case NextKeyS:
		return GapS
	case NextKeyX:
		return GapX
	case RecordS, RecordX:
		panic("lock: the supremum has no record to lock")
	}
	return m
}

var modeNames = [modeCount]string{
	"IS", "IX", "S", "X", "AUTO_INC", "S,REC_NOT_GAP", "X,REC_NOT_GAP", "S,GAP", "X,GAP", "S", "X", "X,GAP,INSERT_INTENTION",
}

// String names the mode as performance_schema.data_locks does.
func (m Mode) String() string {
	if m < modeCount {
		return modeNames[m]
	}
	return "?"
}

// name is String, but on the supremum GAP goes without saying.
func (m Mode) name(supremum bool) string {
	if supremum {
		switch m {
		case GapS:
			return "S"
		case GapX:
			return "X"
		case InsertIntention:
			return "X,INSERT_INTENTION"
		}
	}
	return m.String()
}
