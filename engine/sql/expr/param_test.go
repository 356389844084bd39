package expr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// TestParametersActAsLiterals: an expression gives the same with its literals taken
// out, as the plan cache does it. Numbers and text are, NULLs and the like stay.
func TestParametersActAsLiterals(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	r := randomRows(t, rng)
	literals := []string{"0", "1", "5", "20240131", "2.50", "1e0", "'abc'", "'10'", "'1.5'", "'2024-01-31'", "'10:11:12'",
		"'9223372036854775807'", "9223372036854775807", "''", "2024"}
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	for range 1500 {
		op := pick([]string{" = ", " <> ", " < ", " <= ", " > ", " >= "})
		text := pick(randomColumns) + op + pick(literals)
		switch rng.IntN(4) {
		case 0:
			text = pick(randomColumns) + " IN (" + pick(literals) + ", " + pick(literals) + ", " + pick(randomColumns) + ")"
		case 1:
			text = pick(randomColumns) + " BETWEEN " + pick(literals) + " AND " + pick(literals)
		}
		if strings.HasPrefix(text, "ye ") || strings.HasPrefix(text, "ti ") {
			continue // numbers become years and times only as literals
		}
		checkParameters(t, r, text)
		if t.Failed() {
			t.Fatalf("%s (seed %d)", text, seed)
		}
	}
}

func checkParameters(t *testing.T, r *rig, text string) {
	want, wantErr := r.filterText(t, "SELECT 1 FROM t WHERE "+text, false)
	got, gotErr := r.filterText(t, "SELECT 1 FROM t WHERE "+text, true)
	if want != got || (wantErr == nil) != (gotErr == nil) {
		t.Errorf("%s: literals %s %v, parameters %s %v", text, want, wantErr, got, gotErr)
	}
}

// filterText filters by a statement's WHERE, with its literals as parameters if asked.
func (r *rig) filterText(t *testing.T, sql string, taken bool) (string, error) {
	defer r.x.ResetStatement()
	var s ast.Statement
	var err error
	r.Opt.ParamTypes, r.x.Params = nil, nil
	if taken {
		var b ast.Buffers
		if !ast.Normalize(sql, 0, &b) {
			t.Fatalf("%s is not normalised", sql)
		}
		for _, l := range b.Literals {
			typ := *l.Type
			if typ.IsText() {
				typ.Collation = types.CollationUTF8MB40900AI
			}
			r.Opt.ParamTypes = append(r.Opt.ParamTypes, &typ)
			r.x.Params = append(r.x.Params, l.Value)
		}
		s, err = ast.ParseParameterized(sql, 0)
	} else {
		s = mustParse(t, sql)[0]
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := Bind(r, s.(*ast.Select).Where)
	if err != nil {
		return "", err
	}
	rows, err := Filter(r.x, n, r.rows, nil, nil)
	if err != nil {
		return "", err
	}
	var one []uint32
	for i := range r.rows.Len() {
		if ok, err := True(r.x, n, r.rows, i); err != nil {
			return "", err
		} else if ok {
			one = append(one, uint32(i))
		}
	}
	if fmt.Sprint(one) != fmt.Sprint(rows) {
		t.Errorf("%s: by row %v, by vector %v", sql, one, rows)
	}
	return fmt.Sprint(rows), nil
}
