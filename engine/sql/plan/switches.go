package plan

import "strings"

// Switches are the rewrites and methods that a plan may use, as optimizer_switch has
// them. Each may be off: the rows are the same.
type Switches uint32

const (
	MergeDerived        Switches = 1 << iota // derived tables and views become part of the query around
	ConditionPushdown                        // conditions go into derived tables
	OuterToInner                             // outer joins whose NULL rows are rejected become inner
	EqualityPropagation                      // a = b AND b = 1 gives a = 1
	Semijoin                                 // IN and EXISTS become semi joins
	ConstantFolding                          // conditions without columns are decided when planning
	IndexAccess                              // ranges and lookups of indexes
	IndexOrder                               // ORDER BY and GROUP BY by an index
	IndexOnly                                // an index that has all columns is read alone
	HashJoins                                // joins by hash
	LookupJoins                              // joins by index lookup
	JoinReorder                              // joins in another order than written
	PointGets                                // one row by a unique key
	MinMaxByIndex                            // MIN and MAX by the first entry
	StreamAggregation                        // groups that follow each other are not hashed
	TopNSort                                 // a limit keeps few rows while sorting
	lastSwitch
)

// DefaultSwitches has everything on.
const DefaultSwitches = lastSwitch - 1

// switchNames are the names of the switches, in order; where MySQL has a switch of the
// same meaning, its name.
var switchNames = []string{
	"derived_merge", "derived_condition_pushdown", "outer_to_inner", "equality_propagation", "semijoin",
	"constant_folding", "index_access", "prefer_ordering_index", "index_only", "hash_join", "index_lookup_join",
	"join_reorder", "point_get", "min_max_by_index", "stream_aggregation", "top_n",
}

// SwitchNamed returns the switch of a name, or 0.
func SwitchNamed(name string) Switches {
	for i, n := range switchNames {
		if strings.EqualFold(n, name) {
			return 1 << i
		}
	}
	return 0
}

// String lists the switches as optimizer_switch shows them.
func (s Switches) String() string {
	var b strings.Builder
	for i, n := range switchNames {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(n)
		if s&(1<<i) != 0 {
			b.WriteString("=on")
		} else {
			b.WriteString("=off")
		}
	}
	return b.String()
}
