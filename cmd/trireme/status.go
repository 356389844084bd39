package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/node"
	"github.com/triremedb/trireme/server/users"
)

func runStatus(args []string) error {
	f := flags("status [options]", "Asks a node how its group stands. It fails if no member takes writes or a member does not answer.")
	addrs := f.String("http", "127.0.0.1:18080", "HTTP `addresses` of nodes, parted by commas; the first that answers is asked")
	token := tokenFlag(f)
	asJSON := f.Bool("json", false, "print what the node says as it is")
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return misuse(f, "unexpected %q", f.Arg(0))
	}
	var r node.Report
	var err error
	for addr := range strings.SplitSeq(*addrs, ",") {
		if r, err = askStatus(strings.TrimSpace(addr), *token); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return showStatus(&r)
}

// tokenFlag is --http-token-file of programs that ask for /status.
func tokenFlag(f *flag.FlagSet) *string {
	return f.String("http-token-file", os.Getenv("TRIREME_HTTP_TOKEN_FILE"), "the `file` of the nodes' http_token_file, if they have one (also TRIREME_HTTP_TOKEN_FILE)")
}

var errWantsToken = errors.New("wants a token")

// askStatus asks a node for its report; tokenFile is empty where it wants no token.
func askStatus(addr, tokenFile string) (r node.Report, err error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/status", nil)
	if err != nil {
		return r, err
	}
	if tokenFile != "" {
		token, err := users.ReadPassword(tokenFile)
		if err != nil {
			return r, fmt.Errorf("--http-token-file: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	c := http.Client{Timeout: 5 * time.Second}
	resp, err := c.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusUnauthorized {
		return r, fmt.Errorf("%s %w: give --http-token-file, the file of its http_token_file", addr, errWantsToken)
	}
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s: %s", addr, resp.Status)
	}
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

// doing says how far the recovery of a node is that starts.
func doing(r *node.Report) string {
	if r.Recovery.Doing() == "" {
		return ""
	}
	return "; it is " + r.Recovery.String()
}

// lagOf is a member's lag in words; "-": nobody knows. Of one that does not answer it is what the leader knows.
func lagOf(l *group.Lag) (lag, entries, size string) {
	lag, entries, size = "-", "-", "-"
	if l.Time >= 0 {
		lag = l.Time.Round(time.Millisecond).String()
	}
	if l.Entries >= 0 {
		entries = strconv.FormatInt(l.Entries, 10)
	}
	if l.Bytes >= 0 {
		size = strconv.FormatInt(l.Bytes, 10)
	}
	return lag, entries, size
}

func showStatus(r *node.Report) error {
	if r.Starting {
		fmt.Printf("cluster %s: the node is starting%s\n", r.Cluster, doing(r))
		return errFailed
	}
	fmt.Printf("cluster %s, group %s, Trireme %s\n\n", r.Cluster, r.Group, r.Version)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MEMBER\tROLE\tSTATE\tMYSQL\tREAD-ONLY\tPEER\tTRANSACTION\tLAG\tENTRIES\tBYTES")
	good := true
	writable := false
	voters, answered := 0, 0
	var members []group.Member
	var states []group.Status
	for _, m := range r.Members {
		members, states = append(members, group.Member{ID: m.ID, Learner: m.Learner}), append(states, m.Status)
		if !m.Learner {
			voters++
			if m.Status.Error == "" {
				answered++
			}
		}
		role := "follower"
		switch {
		case m.Status.Writable:
			role, writable = "leader", true
		case m.Learner:
			role = "learner"
		}
		lag, entries, size := lagOf(&m.Status.Lag)
		state := m.State
		if m.Status.Error != "" {
			state, good = state+" ("+m.Status.Error+")", false
		} else if text := m.Status.Trouble(); text != "" {
			state, good = state+", "+text, false
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", m.ID, role, state, m.MySQL, m.ReadOnly, m.Addr, m.Status.Number, lag, entries, size)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Recovery.Doing() != "" {
		fmt.Printf("\nthe node that was asked is %s\n", r.Recovery.String())
	}
	if !writable {
		fmt.Println("\nno member takes writes")
		if text := node.NoMajority(voters, answered, node.Distrust(members, states)); text != "" {
			fmt.Println(text)
		}
	}
	if !writable || !good {
		return errFailed
	}
	return nil
}
