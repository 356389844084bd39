package ast

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pieces cuts the corpus into tokens with the spaces before them.
func pieces(t *testing.T, texts []string) []string {
	var list []string
	for _, sql := range texts {
		l := lexer{s: sql}
		for {
			from := l.pos
			k := l.next()
			if k.kind == tEOF || k.kind == tBad {
				break
			}
			list = append(list, sql[from:k.end])
		}
	}
	return list
}

// signs are the bytes that mean something to the lexer.
const signs = "'\"`\\/*-#@?.();:,!+=<>|&{} \t\n\x00\x80\xff09aexXbBnN_$"

// TestMutations mixes the corpus by tokens and demands of what still parses what
// FuzzParse and FuzzNormalize do. AST_SEED repeats a run, AST_ROUNDS makes it longer.
func TestMutations(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("AST_SEED"), 10, 64); err == nil {
		seed = s
	}
	rounds := 4000
	if n, err := strconv.Atoi(os.Getenv("AST_ROUNDS")); err == nil {
		rounds = n
	}
	texts := corpus(t)
	tokens := pieces(t, texts)
	rng := rand.New(rand.NewPCG(seed, 1))
	parsed := 0
	for range rounds {
		words := pieces(t, texts[rng.IntN(len(texts)):][:1])
		if len(words) == 0 {
			continue
		}
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(words))
			switch rng.IntN(5) {
			case 0: // replace
				words[i] = tokens[rng.IntN(len(tokens))]
			case 1: // insert
				words = append(words[:i], append([]string{tokens[rng.IntN(len(tokens))]}, words[i:]...)...)
			case 2: // delete
				words = append(words[:i], words[i+1:]...)
			case 3: // a run of another text
				other := rng.IntN(len(tokens) - 8)
				words = append(words[:i], append(append([]string{}, tokens[other:other+1+rng.IntN(7)]...), words[i:]...)...)
			case 4: // a token of its own
				j := rng.IntN(len(words))
				words[i] = words[j]
			}
			if len(words) == 0 {
				break
			}
		}
		sql := strings.Join(words, "")
		if rng.IntN(3) == 0 && sql != "" {
			b := []byte(sql)
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] = signs[rng.IntN(len(signs))]
			}
			sql = string(b)
		}
		mode := Mode(rng.IntN(64))
		list, err := Parse(sql, mode)
		if err != nil && !isSQLError(err) {
			t.Errorf("seed %d, mode %d: %q: %v", seed, mode, sql, err)
		}
		for _, s := range list {
			parsed++
			if err := roundTrip(s, Format(s)); err != nil {
				t.Errorf("seed %d, mode %d: %q\n%v", seed, mode, sql, err)
			}
		}
		if err := checkNormalized(sql, mode, false); err != nil {
			t.Errorf("seed %d, mode %d: %q\n%v", seed, mode, sql, err)
		}
	}
	if parsed < rounds/50 {
		t.Errorf("seed %d: only %d statements parsed", seed, parsed)
	}
}
