// Package history checks what clients have seen of lists to which transactions append.
//
// Each list holds unique values, so that a read tells which appends came before it and
// in what order. From all reads together follow the order of the appends to each list,
// and from that what must have come before what:
//
//	ww  a transaction appended right behind another's value
//	wr  a transaction read a list whose last value is the other's
//	rw  a transaction read a list to whose next value the other appended
//	rt  a transaction had been acknowledged when the other began
//
// A transaction stands in the graph with two points, its snapshot, at which it reads,
// and its commit, at which it writes and reads with locks; at SERIALIZABLE they are one.
// A cycle is what no order in time explains: an anomaly.
//
// At REPEATABLE READ that allows what InnoDB does: reads of one snapshot, which sees all
// that was acknowledged before it, beside writes that act on the newest version. A write
// onto what the snapshot did not see is no anomaly there; at SERIALIZABLE it is.
package history

// Level is an isolation level.
type Level int

// The levels.
const (
	Serializable Level = iota
	RepeatableRead
)

// Outcome is what a client knows of a transaction.
type Outcome int

// The outcomes.
const (
	Committed Outcome = iota
	Aborted
	Unknown // the answer to the commit was lost
)

// Op is a read of a list, or an append to one.
type Op struct {
	Key    int
	Append bool
	Value  int   // that is appended
	Read   []int // what is read
	Locked bool  // a read with locks: of the newest version
}

// Txn is a transaction, with its operations in their order.
type Txn struct {
	Name    string // for people
	Ops     []Op
	Outcome Outcome
	// Begin and End are when it began and was acknowledged, by one clock.
	Begin, End int64
	// Stale is set for one that reads on a member which may lag: its snapshot may be
	// older than what was acknowledged before it.
	Stale bool
}

// Anomaly is what must not have happened.
type Anomaly struct {
	Kind string // G0, G1a, …
	Text string
}

func (a Anomaly) String() string { return a.Kind + ": " + a.Text }
