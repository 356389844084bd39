// Command testsum reads the output of `go test -json` and prints a line for each
// package, everything that failing tests wrote, and how many tests passed and
// failed. The last lines repeat what the failing tests complained of. It exits with 1
// if any failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64
}

// summary gathers events. Output is kept until its test has passed.
type summary struct {
	output         map[string]*strings.Builder
	passed, failed int
	brokenPackages int
	failedIn       map[string]bool
	complaints     []string
}

// complaint is a line that says what was wrong, among those that servers and tests
// log: what a test reports with its place, a race, a panic.
var complaint = regexp.MustCompile(`^\s*([\w.]+_test\.go:\d+: |WARNING: DATA RACE|panic: |fatal error: )`)

const (
	complaintsOfTest = 10
	complaintLength  = 500
)

func main() {
	s := summary{output: map[string]*strings.Builder{}, failedIn: map[string]bool{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // not from a test: the go command itself
			continue
		}
		s.add(e)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	for _, c := range s.complaints {
		fmt.Println(c)
	}
	if s.brokenPackages > 0 {
		fmt.Printf("%d packages failed outside of their tests\n", s.brokenPackages)
	}
	fmt.Printf("%d passed, %d failed\n", s.passed, s.failed+s.brokenPackages)
	if s.failed+s.brokenPackages > 0 {
		os.Exit(1)
	}
}

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if s.output[key] == nil {
			s.output[key] = &strings.Builder{}
		}
		s.output[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			s.endTest(e, key)
		} else {
			s.endPackage(e, key)
		}
		delete(s.output, key)
	}
}

func (s *summary) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		s.failedIn[e.Package] = true
		s.print(key)
	}
}

func (s *summary) endPackage(e event, key string) {
	switch e.Action {
	case "pass":
		fmt.Printf("ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
	case "fail":
		s.print(key)
		if !s.failedIn[e.Package] {
			s.brokenPackages++ // a build that failed, a panic, a time limit
			for k := range s.output {
				if strings.HasPrefix(k, e.Package+" ") {
					s.print(k)
				}
			}
		}
		fmt.Printf("FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
	}
}

func (s *summary) print(key string) {
	b := s.output[key]
	if b == nil {
		return
	}
	fmt.Print(b.String())
	n := 0
	for line := range strings.Lines(b.String()) {
		if n < complaintsOfTest && complaint.MatchString(line) {
			line = strings.TrimSpace(line)
			s.complaints = append(s.complaints, key+": "+line[:min(len(line), complaintLength)])
			n++
		}
	}
	b.Reset()
}
