package group

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/cache"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/raftlog"
)

const (
	// leftName is the file of a member that was told by its leader that it has left the group for good: a copy of the file
	// "member". Others' word of it is no surprise then, and one is enough; see removal.
	leftName = "left"
	// discardedName is what the file "member" is called in a directory whose data are to go.
	discardedName = "discarded"
)

var (
	errDiscarded = errors.New("group: the member that this directory was of has left the group: the next start of a node here removes what is left of it, " +
		"and joins as a new member; to keep its data move the directory elsewhere, and give the file named discarded its name member back there")
	errTwoMembers = errors.New("group: the directory says that its member has left the group and is to be forgotten (the file named discarded), and has a file named member: " +
		"remove the first if the data are those of the second, or empty the directory and let the node join as a new member")
)

// HasLeft notes that the leader has said that this member has left the group, and a majority cannot forget it: should
// the node be started again, one voter that says so as well is believed.
func (n *Node) HasLeft() error { return n.id.writeAs(n.opt.FS, leftName) }

// readLeft reports whether HasLeft was called for this member.
func readLeft(fsys file.FS, id *identity) (bool, error) {
	left, err := readIdentityAs(fsys, leftName)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errIdentity): // one that is damaged says nothing
		return false, nil
	case err != nil:
		return false, err
	}
	return left.group == id.group && left.id == id.id, nil
}

// Discard lets the next start in this directory remove the data, and begin as a new member. Nothing is removed
// before that.
//
// REQUIRES: Err says ErrRemoved. The node is not closed.
func (n *Node) Discard() error {
	if err := n.Err(); !errors.Is(err, ErrRemoved) {
		return fmt.Errorf("group: only the data of a member that was removed can be discarded: %w", err)
	}
	err := n.opt.FS.Rename(identityName, discardedName)
	if err == nil {
		err = n.opt.FS.SyncDir(".")
	}
	return err
}

// finishDiscard removes what a member had in the directory, if Discard was called in it, and reports that it was. Whatever
// else is in the directory stays: what was moved aside, which groups were replaced, certificates.
func finishDiscard(fsys file.FS) (bool, error) {
	names, err := fsys.List(".")
	switch {
	case err != nil:
		return false, err
	case !slices.Contains(names, discardedName):
		return false, nil
	case slices.Contains(names, identityName):
		return false, errTwoMembers
	}
	// The process that has called Discard may have been killed before the new name was durable.
	if err := fsys.SyncDir("."); err != nil {
		return false, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "data.") || slices.Contains([]string{raftlog.StateFileName, raftlog.StateCopyName, promiseName, promiseCopyName, rivalsName, formerName, awaitsName, leftName, cache.DefaultDir}, name) {
			if err := file.RemoveTree(fsys, name); err != nil {
				return false, fmt.Errorf("group: removing what a member that has left had in the directory: %w", err)
			}
		}
	}
	err = fsys.SyncDir(".")
	if err == nil {
		err = fsys.Remove(discardedName)
	}
	if err == nil {
		err = fsys.SyncDir(".")
	}
	return err == nil, err
}
