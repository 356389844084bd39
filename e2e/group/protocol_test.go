package group_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/replication/group"
)

// request is what the test wants of a node.
type request struct {
	Do string // one of the keys of commands

	Op               uint64 // of a transfer
	From, To, Amount int64
	Token            entry.Token
	Ask              bool          // first what became of the token
	Abort            bool          // roll back at the end
	Limit            time.Duration // of waiting: for a commit, a read point, a change

	Consistency group.Consistency // of a read
	Number      uint64
	Bound       time.Duration
	Ops         []uint64 // to look for

	Member  group.Member // to add, promote, remove, hand over to, put in the place of Old
	Old     uint64
	Setting string // to set
	Value   int64
	Slot    int    // of a definition
	Mark    string // of it
}

// outcome is what a node says about a transfer.
type outcome string

const (
	committed outcome = "committed"
	refused   outcome = "refused"
	unknown   outcome = "unknown"
)

// answer is what a node says. Error is empty if all went well.
type answer struct {
	Error   string
	Fault   string // what must never be
	Outcome outcome
	Number  uint64
	Leader  uint64

	Sum     int64 // of balances
	Rows    int
	Missing []uint64 // of Ops

	Status  group.Status
	Members []group.Member
	Newest  uint64 // file of the log
	Marks   [slots]string
	Hash    string
	Closed  []string // files
	Ids     []uint64 // of all operations in the table
	Log     map[uint64]uint64
	LogFrom uint64 // transaction
}

// errNotSent: the request has not reached a node.
var errNotSent = errors.New("the node is down")

// post sends a request to a node's address. After an error other than errNotSent
// nobody knows whether it was executed.
func post(c *http.Client, addr string, r *request, limit time.Duration) (*answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	hc := *c
	hc.Timeout = limit
	resp, err := hc.Post("http://"+addr, "application/json", bytes.NewReader(body))
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, fmt.Errorf("%w: %w", errNotSent, err)
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	return a, json.Unmarshal(text, a)
}
