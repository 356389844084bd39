package group

import (
	"errors"
	"fmt"
	"io/fs"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/storage/file"
)

// A term has one leader, unless a member has voted twice in it. Entries of two leaders of one term that have the same
// index are the same to Raft, so that whoever hears both stops before it takes part in both. Any two majorities
// share a member: what one of the leaders has acknowledged the other one could not, unless that member was started again
// just between.
//
// A node that is started again would follow whoever still leads, so that the stop is written down. No start in this
// directory goes on before an operator has found out which members are the same.

// ErrTwoLeaders: this member has heard two leaders of one term. The node has stopped, and does not start again.
var ErrTwoLeaders = errors.New("group: two members lead in one term")

// rivalsName is the file that has the term of which two leaders were heard.
const rivalsName = "two-leaders"

var rivalsMagic = [8]byte{'T', 'R', 'I', '2', 'L', 'E', 'D', '1'}

// rival is who leads already in the term of a leader's message; 0: nobody else.
func (t *raftTask) rival(m *raftpb.Message) uint64 {
	switch {
	case t.led != 0 && m.GetTerm() == t.led:
		return t.n.opt.ID
	case t.promise.to.term == m.GetTerm() && t.promise.to.member != m.GetFrom():
		return t.promise.to.member
	}
	return 0
}

// stopBetween ends the node since two members lead in the term of a message.
func (t *raftTask) stopBetween(m *raftpb.Message, rival uint64) {
	err := fmt.Errorf("%w: %d and %d, in term %d. Some member has voted twice: its disk has lost what it "+
		"had confirmed, or an old copy of its directory was put back. This node stops before it takes part in both, and %s",
		ErrTwoLeaders, m.GetFrom(), rival, m.GetTerm(), afterRivals)
	if e := writeNumberFile(t.n.opt.FS, rivalsName, rivalsMagic, m.GetTerm()); e != nil {
		err = fmt.Errorf("%w (the file named %s, which keeps it from starting again, could not be written: %w)", err, rivalsName, e)
	}
	t.n.fail(err)
}

const afterRivals = "does not start again: see docs/operations-group.md, When two members lead in one term"

// noRivals is an error if the member of a directory was stopped between two leaders.
func noRivals(fsys file.FS) error {
	there, err := fsys.Exists(rivalsName)
	if err != nil || !there {
		return err
	}
	term, err := readNumberFile(fsys, rivalsName, rivalsMagic)
	if err != nil && err != errNumberFile && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: this member has heard two leaders of term %d (the file named %s in its directory says so), and %s",
		ErrTwoLeaders, term, rivalsName, afterRivals)
}
