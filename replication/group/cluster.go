package group

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// clusterFile has the id of the directory's group and, behind a space, the name of the cluster that the member
// was set up for when it was started first. That of another group, of which this one was made, counts for nothing.
const clusterFile = "cluster"

// clusterMax is the longest content of that file.
const clusterMax = 1 << 10

// keepCluster refuses a node that is set up for another cluster than the member whose directory it was given, and
// notes the name if it is not noted yet.
func keepCluster(fsys file.FS, group [16]byte, name string) error {
	b, err := readCluster(fsys)
	if err != nil {
		return err
	}
	id := transport.GroupID(group).String() + " "
	known, ours := strings.CutPrefix(string(b), id)
	switch {
	case ours && known != name:
		return fmt.Errorf("group: this directory is that of a member of cluster %q, and cluster_name is %q: set cluster_name=%s, or give the node a "+
			"directory of its own. To give the cluster another name stop its members, remove the file named %s from each of their directories, and "+
			"start all of them with the new name", known, name, known, clusterFile)
	case ours:
		return nil
	}
	err = file.WriteWhole(fsys, clusterFile, []byte(id+name))
	if errors.Is(err, file.ErrNoSpace) {
		return nil // another start will note it
	}
	return err
}

// readCluster reads the file; without one it is empty.
func readCluster(fsys file.FS) ([]byte, error) {
	b, err := file.ReadWhole(fsys, clusterFile, clusterMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("group: the file named %s: %w", clusterFile, err)
	}
	return b, nil
}
