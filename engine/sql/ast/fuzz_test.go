package ast

import "testing"

// FuzzParse: any text gives statements or an SQL error, and what it gives has a
// canonical text that means the same.
func FuzzParse(f *testing.F) {
	for _, sql := range corpus(f) {
		f.Add(sql, uint8(0))
		f.Add(sql, uint8(ModeANSIQuotes|ModePipesAsConcat))
		f.Add(sql, uint8(ModeNoBackslashEscapes))
	}
	f.Fuzz(func(t *testing.T, sql string, mode uint8) {
		list, err := Parse(sql, Mode(mode))
		if err != nil && !isSQLError(err) {
			t.Fatalf("not an SQL error: %v", err)
		}
		for _, s := range list {
			if err := roundTrip(s, Format(s)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzNormalize checks keys as checkNormalized says.
func FuzzNormalize(f *testing.F) {
	for _, sql := range corpus(f) {
		f.Add(sql, uint8(0))
		f.Add(sql, uint8(ModeANSIQuotes))
		f.Add(sql, uint8(ModeNoBackslashEscapes))
	}
	f.Fuzz(func(t *testing.T, sql string, mode uint8) {
		var b Buffers
		NormalizePrepared(sql, Mode(mode), &b)
		if err := checkNormalized(sql, Mode(mode), false); err != nil {
			t.Fatal(err)
		}
	})
}
