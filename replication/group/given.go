package group

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/file"
)

// givenName is a file beside data that another member has given: up to where the group had agreed on the log
// that came with them. Data begin with the membership as of their snapshot, and the log goes on behind it: with
// the index Raft has the changes between take effect before this member stands for election, as those that it
// had acknowledged itself (decision 0024). The file stays as long as the data: it says no less than what was true.
const givenName = "committed"

var givenMagic = [8]byte{'T', 'R', 'I', 'C', 'O', 'M', 'M', '1'}

func writeGiven(data file.FS, index uint64) error {
	return writeNumberFile(data, givenName, givenMagic, index)
}

// readGiven reads it. 0: there is none.
func readGiven(data file.FS) (index uint64, err error) {
	index, err = readNumberFile(data, givenName, givenMagic)
	if err == errNumberFile {
		err = fmt.Errorf("group: the file named %s, of the data that this member was given, is damaged; empty the node's directory and let it join as a new member", givenName)
	}
	return index, err
}
