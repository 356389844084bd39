package window

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// naive computes a function by its definition: for each row the partition, the peers and
// the frame are looked for among all rows.
type naive struct {
	rows [][]types.Value
	node *plan.Window
	call *plan.WindowCall
}

func (n *naive) sameKeys(i, j int, keys []int) bool {
	for _, c := range keys {
		if types.Compare(n.rows[i][c], n.rows[j][c], columns[c]) != 0 {
			return false
		}
	}
	return true
}

// run is the rows around row i that agree with it in the keys.
func (n *naive) run(i int, keys []int) (from, to int) {
	for from = i; from > 0 && n.sameKeys(from-1, i, keys); from-- {
	}
	for to = i + 1; to < len(n.rows) && n.sameKeys(to, i, keys); to++ {
	}
	return from, to
}

// frame is the rows of the frame of row i.
func (n *naive) frame(i int) []int {
	part, end := n.run(i, n.node.Partition)
	first, last := n.run(i, append(append([]int(nil), n.node.Partition...), n.node.Order...))
	var list []int
	for j := part; j < end; j++ {
		if n.within(i, j, first, last, &n.call.Frame.Start) >= 0 && n.within(i, j, first, last, &n.call.Frame.End) <= 0 {
			list = append(list, j)
		}
	}
	return list
}

// within says whether row j of the partition is before a bound of row i (-1), behind it
// (1), or on it.
func (n *naive) within(i, j, first, last int, b *plan.WindowBound) int {
	switch {
	case b.Kind == plan.BoundUnbounded && b.Following:
		return -1
	case b.Kind == plan.BoundUnbounded:
		return 1
	case n.call.Frame.Rows:
		at := i
		if b.Kind == plan.BoundOffset {
			at += direction(b) * int(offset(b))
		}
		return sign(j - at)
	case b.Kind == plan.BoundCurrent || n.rows[i][b.Key].IsNull():
		switch {
		case j < first:
			return -1
		case j >= last:
			return 1
		}
		return 0
	}
	key := n.rows[j][b.Key]
	order := -1 // NULL is before all
	if !key.IsNull() {
		order = sign(int(key.Int() - n.rows[i][b.Limit].Int()))
	}
	if b.Desc {
		order = -order
	}
	return order
}

func offset(b *plan.WindowBound) int64 {
	v, _ := b.Offset.Value(nil, nil, 0)
	return v.Int()
}

func direction(b *plan.WindowBound) int {
	if b.Following {
		return 1
	}
	return -1
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// value is the function's result for row i, as text.
func (n *naive) value(i int) string {
	part, end := n.run(i, n.node.Partition)
	first, last := n.run(i, append(append([]int(nil), n.node.Partition...), n.node.Order...))
	c := n.call
	at := func(j int, from, to int) string {
		if j < from || j >= to {
			return "NULL"
		}
		return show(n.rows[j][c.Value], columns[c.Value])
	}
	count := int64(1)
	if c.Count != nil {
		v, _ := c.Count.Value(nil, nil, 0)
		count = v.Int()
	}
	switch c.Name {
	case "row_number":
		return fmt.Sprint(i - part + 1)
	case "rank":
		return fmt.Sprint(first - part + 1)
	case "dense_rank":
		k := 1
		for j := part + 1; j <= i; j++ {
			if !n.sameKeys(j-1, j, n.node.Order) {
				k++
			}
		}
		return fmt.Sprint(k)
	case "percent_rank":
		if end-part == 1 {
			return "0"
		}
		return number(float64(first-part) / float64(end-part-1))
	case "cume_dist":
		return number(float64(last-part) / float64(end-part))
	case "ntile":
		return fmt.Sprint(bucket(i-part, end-part, int(count)) + 1)
	case "lag", "lead":
		j := i - int(count)
		if c.Name == "lead" {
			j = i + int(count)
		}
		if (j < part || j >= end) && c.Default >= 0 {
			return show(n.rows[i][c.Default], columns[c.Default])
		}
		return at(j, part, end)
	}
	frame := n.frame(i)
	switch c.Name {
	case "first_value", "nth_value", "last_value":
		k := int(count)
		if c.Name == "last_value" {
			k = len(frame)
		}
		if k < 1 || k > len(frame) {
			return "NULL"
		}
		return at(frame[k-1], 0, len(n.rows))
	}
	return n.aggregate(frame)
}

// bucket deals rows out one by one: the first buckets get what is left over.
func bucket(k, rows, buckets int) int {
	for b := range buckets {
		size := rows / buckets
		if b < rows%buckets {
			size++
		}
		if k < size {
			return b
		}
		k -= size
	}
	return -1
}

func (n *naive) aggregate(frame []int) string {
	var list []types.Value
	col := -1
	if in := n.call.Aggregate.Inputs(); len(in) > 0 {
		col = inputColumn(in[0])
	}
	for _, j := range frame {
		if col < 0 || n.call.Name == "json_arrayagg" || !n.rows[j][col].IsNull() {
			v := types.Null
			if col >= 0 {
				v = n.rows[j][col]
			}
			list = append(list, v)
		}
	}
	switch n.call.Name {
	case "count":
		return fmt.Sprint(len(list))
	case "bit_and":
		x := ^uint64(0)
		for _, v := range list {
			x &= uint64(v.Int())
		}
		return fmt.Sprint(x)
	case "bit_xor":
		x := uint64(0)
		for _, v := range list {
			x ^= uint64(v.Int())
		}
		return fmt.Sprint(x)
	}
	if len(list) == 0 {
		return "NULL"
	}
	switch n.call.Name {
	case "min", "max":
		best := list[0]
		for _, v := range list[1:] {
			if c := types.Compare(v, best, columns[col]); c < 0 == (n.call.Name == "min") && c != 0 {
				best = v
			}
		}
		return show(best, columns[col])
	case "json_arrayagg":
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = "null"
			if !v.IsNull() {
				parts[i] = show(v, jsonType)
			}
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return n.sum(list, columns[col].Class() == types.ClassDouble)
}

func (n *naive) sum(list []types.Value, double bool) string {
	sum, squares := 0.0, 0.0
	for _, v := range list {
		sum += asFloat(v)
	}
	mean := sum / float64(len(list))
	for _, v := range list {
		squares += (asFloat(v) - mean) * (asFloat(v) - mean)
	}
	switch {
	case n.call.Name == "var_pop":
		return number(squares / float64(len(list)))
	case n.call.Name == "avg" && double:
		return number(mean)
	case n.call.Name == "avg":
		// Halves are rounded away from zero.
		units, n := int64(math.Abs(sum))*20_000, int64(len(list))
		return strconv.FormatFloat(math.Copysign(float64((units+n)/(2*n)), sum)/1e4, 'f', 4, 64)
	case double:
		return number(sum)
	}
	return strconv.FormatFloat(sum, 'f', 0, 64)
}

func asFloat(v types.Value) float64 {
	if v.Class() == types.ClassDouble {
		return v.Double()
	}
	return float64(v.Int())
}

// number writes a double without its last digits.
func number(f float64) string {
	if math.Abs(f) < 1e-9 {
		return "0"
	}
	return strconv.FormatFloat(f, 'g', 9, 64)
}

// show writes a value. Of texts that are equal any may stand for all.
func show(v types.Value, t *types.Type) string {
	switch v.Class() {
	case types.ClassNull:
		return "NULL"
	case types.ClassDouble:
		return number(v.Double())
	case types.ClassBytes:
		return strings.ToLower(string(v.Bytes()))
	case types.ClassDecimal:
		return v.Decimal().String()
	case types.ClassUint:
		return fmt.Sprint(v.Uint())
	case types.ClassInt:
		return fmt.Sprint(v.Int())
	}
	return string(json.Open(v.Bytes()).AppendText(nil))
}
