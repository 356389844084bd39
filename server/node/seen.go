package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// seenName is the file of the data directory that lists the pods whose members this node has seen in the
// group, so that it deletes the claims of those that left although it was started again meanwhile.
const seenName = "seen.json"

// seenMax is the longest file that is read.
const seenMax = 1 << 16

// seenPods is what the file says.
type seenPods struct {
	Group string            `json:"group"`
	Pods  map[uint64]string `json:"pods"`           // addresses of members
	Gone  map[uint64]int64  `json:"gone,omitempty"` // since when they are none, in seconds since 1970
}

// keepSeen writes the file. It is of no use while claims are left alone, and then of harm: claims that were
// to stay would go once they are not left alone any more.
func (s *scaled) keepSeen() {
	if !s.n.cfg.Bool("kubernetes_delete_claims") {
		return
	}
	pods := seenPods{Group: s.group(), Pods: map[uint64]string{}, Gone: map[uint64]int64{}}
	for id, m := range s.seen {
		pods.Pods[id] = m.addr
		if !m.gone.IsZero() {
			pods.Gone[id] = m.gone.Unix()
		}
	}
	b, err := json.Marshal(pods)
	if err == nil {
		err = file.WriteWhole(file.OS(s.n.dir), seenName, fmt.Appendf(b, "\n%08x\n", crc32.ChecksumIEEE(b)))
	}
	if err != nil {
		s.n.log.Warn("the next process will not know whose claims are to go", "file", seenName, "error", err)
	}
	s.unkept = err != nil
}

// readSeen reads the file. What it says of another group counts for nothing: the claims of a group that was
// lost stay.
func (s *scaled) readSeen() error {
	fsys := file.OS(s.n.dir)
	if !s.n.cfg.Bool("kubernetes_delete_claims") {
		if err := fsys.Remove(seenName); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := file.ReadWhole(fsys, seenName, seenMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	const sum = len("\n12345678\n")
	text := b[:max(0, len(b)-sum)]
	if string(b[len(text):]) != fmt.Sprintf("\n%08x\n", crc32.ChecksumIEEE(text)) {
		return errors.New("it is damaged")
	}
	var pods seenPods
	if err := json.Unmarshal(text, &pods); err != nil {
		return err
	}
	if pods.Group != s.group() {
		return nil
	}
	for id, addr := range pods.Pods {
		m := seenMember{addr: addr}
		if gone, ok := pods.Gone[id]; ok {
			m.gone = time.Unix(gone, 0)
		}
		s.seen[id] = m
	}
	return nil
}

func (s *scaled) group() string { return transport.GroupID(s.n.group.Group()).String() }
