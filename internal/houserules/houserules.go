// Package houserules checks the rules of the house that the compiler does not:
// which package may import which, how long a file may be, what a library may not
// do. Its test runs every rule over the repository and is part of `make test`.
//
// A rule looks at one file or one package and returns what is wrong, each finding
// with its place. There are no exceptions by comment: a rule that is wrong is
// changed here, with its reason.
package houserules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/triremedb/trireme"

// MaxLines is how long a Go file may be that people write.
const MaxLines = 800

// source is one Go file.
type source struct {
	name      string // path from the root, with slashes
	text      []byte
	file      *ast.File
	fset      *token.FileSet
	test      bool
	generated bool
}

// dir is the package's directory from the root.
func (s *source) dir() string { return path.Dir(s.name) }

// program reports whether the file is part of a command, not of a library.
func (s *source) program() bool { return s.file.Name.Name == "main" }

func (s *source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.name, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// imports returns the import paths of the file.
func (s *source) imports() map[string]*ast.ImportSpec {
	m := map[string]*ast.ImportSpec{}
	for _, i := range s.file.Imports {
		m[strings.Trim(i.Path.Value, `"`)] = i
	}
	return m
}

func parse(name string, text []byte) (*source, error) {
	s := &source{name: name, text: text, fset: token.NewFileSet(), test: strings.HasSuffix(name, "_test.go")}
	var err error
	s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err == nil {
		s.generated = ast.IsGenerated(s.file)
	}
	return s, err
}

// Check runs every rule over the repository at root, over the files of the directories
// that are wanted.
func Check(root string, wanted func(dir string) bool) ([]string, error) {
	var sources []*source
	var findings []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			return enter(p, name, d.Name())
		}
		if !d.Type().IsRegular() || !wanted(path.Dir(name)) {
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			s, err := parse(name, text)
			if err != nil {
				findings = append(findings, err.Error())
				return nil
			}
			sources = append(sources, s)
		case ".md", ".sh", ".yaml", ".yml", ".proto":
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if name != "docs/errors.md" { // it is made of the texts of engine/sqlerr, which are MySQL's
				findings = append(findings, markers(name, text)...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		findings = append(findings, checkFile(s)...)
	}
	findings = append(findings, packageComments(sources)...)
	sort.Strings(findings)
	return findings, nil
}

// enter skips what is not ours to check: hidden and vendored directories, tools, test
// data, and other modules.
func enter(p, name, base string) error {
	if name == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") || name == "bin" || base == "testdata" || base == "node_modules" || base == "vendor" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// checkFile runs the rules that look at one file.
func checkFile(s *source) []string {
	findings := floors(s)
	if s.generated {
		return findings
	}
	findings = append(findings, formatting(s)...)
	findings = append(findings, length(s)...)
	findings = append(findings, markers(s.name, s.text)...)
	findings = append(findings, printing(s)...)
	findings = append(findings, determinism(s)...)
	findings = append(findings, skipping(s)...)
	findings = append(findings, errorNumbers(s)...)
	return findings
}

func formatting(s *source) []string {
	want, err := format.Source(s.text)
	if err != nil || !bytes.Equal(want, s.text) {
		return []string{s.name + ": not formatted; run gofmt"}
	}
	return nil
}

func length(s *source) []string {
	if n := bytes.Count(s.text, []byte("\n")); n > MaxLines {
		return []string{fmt.Sprintf("%s: %d lines, at most %d are allowed", s.name, n, MaxLines)}
	}
	return nil
}

// The markers are spelled so that this file does not find itself.
var marker = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|\bnot ` + `implemented\b|\bunimple` + `mented\b`)

// markers finds notes about work that was left.
func markers(name string, text []byte) []string {
	var findings []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		if m := marker.Find(line); m != nil {
			findings = append(findings, fmt.Sprintf("%s:%d: leftover marker %q", name, i+1, m))
		}
	}
	return findings
}

// called returns the package (or receiver) and the name of a call like pkg.F().
func called(n ast.Node) (pkg, name string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return "", fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			return x.Name, fn.Sel.Name
		}
	}
	return "", ""
}

// printing: a library reports by errors and by the logger it is given.
func printing(s *source) []string {
	top, _, _ := strings.Cut(s.name, "/")
	if s.test || s.program() || top == "cmd" || top == "bench" {
		return nil
	}
	var findings []string
	if spec := s.imports()["log"]; spec != nil {
		findings = append(findings, s.at(spec, "a library does not use package log"))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		pkg, name := called(n)
		if pkg == "fmt" && strings.HasPrefix(name, "Print") || pkg == "" && (name == "println" || name == "print") {
			findings = append(findings, s.at(n, "a library does not print"))
		}
		return true
	})
	return findings
}

// skipping: a test passes or fails.
func skipping(s *source) []string {
	if !s.test {
		return nil
	}
	var findings []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch pkg, name := called(n); name {
		case "Skip", "Skipf", "SkipNow":
			if pkg == "t" || pkg == "b" || pkg == "f" || pkg == "tb" {
				findings = append(findings, s.at(n, "a test is not skipped"))
			}
		}
		return true
	})
	return findings
}

// packageComments: every package says what it is.
func packageComments(sources []*source) []string {
	documented := map[string]bool{}
	for _, s := range sources {
		if !s.test {
			documented[s.dir()] = documented[s.dir()] || s.file.Doc != nil
		}
	}
	var findings []string
	for dir, ok := range documented {
		if !ok {
			findings = append(findings, dir+": no package comment")
		}
	}
	return findings
}
