package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
)

// isVolatile reports whether a plan computes something that differs from call to call
// (RAND(), UUID()): its result must not be kept.
func isVolatile(n plan.Node) bool {
	for _, e := range expressions(n) {
		if e != nil && expr.VolatilityOf(e) == expr.Volatile {
			return true
		}
	}
	for _, c := range n.Children() {
		if isVolatile(c) {
			return true
		}
	}
	return false
}

// expressions are those that a node computes for its rows. Some may be nil.
func expressions(n plan.Node) []expr.Node {
	switch n := n.(type) {
	case *plan.PointGet:
		return append(keyExprs(n.Key), n.Filter)
	case *plan.TableScan:
		return []expr.Node{n.Filter}
	case *plan.VirtualScan:
		return []expr.Node{n.Filter}
	case *plan.Values:
		var list []expr.Node
		for _, row := range n.Rows {
			list = append(list, row...)
		}
		return list
	case *plan.Filter:
		return []expr.Node{n.Predicate}
	case *plan.Project:
		return n.Exprs
	case *plan.Sort:
		return sortExprs(n.Keys)
	case *plan.TopN:
		return sortExprs(n.Keys)
	case *plan.HashAggregate:
		return groupExprs(n.Groups, n.Aggregates)
	case *plan.StreamAggregate:
		return groupExprs(n.Groups, n.Aggregates)
	case *plan.NestedLoopJoin:
		list := []expr.Node{n.Condition}
		for _, b := range n.Bindings {
			list = append(list, b.Expr)
		}
		return list
	case *plan.HashJoin:
		list := append([]expr.Node{n.Condition}, n.LeftKeys...)
		return append(list, n.RightKeys...)
	case *plan.IndexLookupJoin:
		return append(keyExprs(n.Key), n.Filter, n.Condition)
	}
	return nil
}

func keyExprs(keys []plan.KeyValue) []expr.Node {
	var list []expr.Node
	for i := range keys {
		list = append(list, keys[i].Expr)
	}
	return list
}

func sortExprs(keys []plan.SortKey) []expr.Node {
	var list []expr.Node
	for i := range keys {
		list = append(list, keys[i].Expr)
	}
	return list
}

func groupExprs(groups []expr.Node, aggs []plan.Aggregate) []expr.Node {
	list := append([]expr.Node(nil), groups...)
	for i := range aggs {
		list = append(list, aggs[i].Call.Inputs()...)
	}
	return list
}
