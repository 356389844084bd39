package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
)

// Format is the format of the directory that this program writes and reads.
const Format = 1

// InfoName is the file that says what a backup is.
const InfoName = "backup.json"

// Info says what a backup is.
type Info struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // that the member ran, with its version
	Group   string    `json:"group"`   // id of the group, as in its GTIDs
	Cluster string    `json:"cluster"` // its name
	Taken   time.Time `json:"taken"`   // when the snapshot was taken, by the member's clock
	// Snapshot is the last transaction in the data, Last the last one in the log behind
	// them: the backup can be restored to each of these and those between.
	Snapshot uint64 `json:"snapshot"`
	Last     uint64 `json:"last"`
	Files    []File `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Sum   Sum    `json:"sha256"`
}

// Sum is a SHA-256, in JSON as hexadecimal digits.
type Sum [sha256.Size]byte

// MarshalText implements [encoding.TextMarshaler].
func (s Sum) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Sum) UnmarshalText(b []byte) error {
	if len(b) != 2*len(s) {
		return errors.New("a SHA-256 has 64 hexadecimal digits")
	}
	_, err := hex.Decode(s[:], b)
	return err
}

// Bytes is the size of all files.
func (i *Info) Bytes() (sum int64) {
	for _, f := range i.Files {
		sum += f.Bytes
	}
	return sum
}

// ErrDamaged says that a backup is not what was written.
var ErrDamaged = errors.New("the backup is damaged")

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, a...)...)
}

// ErrNoBackup says that a directory holds no backup, or one that was not finished.
var ErrNoBackup = errors.New("there is no whole backup in the directory: it has no " + InfoName)

// logNumber is the number of a log file by its name in a backup.
func logNumber(name string) (number uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, group.BackupLogPrefix)
	if !ok {
		return 0, false
	}
	return log.FileNumber(rest)
}

// isName reports whether a file of a backup may have this name.
func isName(name string) bool {
	_, ok := logNumber(name)
	return ok || provision.IsDumpName(name)
}

// infoMax is the longest backup.json, in bytes: some 100,000 files.
const infoMax = 32 << 20

// readInfo reads and checks what a backup says of itself.
func readInfo(fsys file.FS) (*Info, error) {
	b, err := file.ReadWhole(fsys, InfoName, infoMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoBackup
	case errors.Is(err, file.ErrTooLong):
		return nil, damaged("%v", err)
	case err != nil:
		return nil, err
	}
	info := &Info{}
	if err := json.Unmarshal(b, info); err != nil {
		return nil, damaged("%s: %v", InfoName, err)
	}
	if info.Format != Format {
		return nil, fmt.Errorf("the backup has format %d, this program knows %d: use the version that wrote it (%s), or a newer one", info.Format, Format, info.Program)
	}
	seen := map[string]bool{}
	for _, f := range info.Files {
		if !isName(f.Name) || f.Bytes < 0 || seen[f.Name] {
			return nil, damaged("%s names a file %.100q", InfoName, f.Name)
		}
		seen[f.Name] = true
	}
	return info, nil
}
