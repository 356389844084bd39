package temptable

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/sqlerr"
)

const (
	// diskGrain is in what steps space is taken of a node's disk, in bytes: the file system is asked as often.
	diskGrain = 1 << 20
	// diskModest is what an owner may have whatever others have, as long as the disk has it.
	diskModest = 16 << 20
	// reserveMost is the most that temporary files leave free for commits; it is a tenth of a smaller disk.
	reserveMost = 1 << 30
)

// Reserve is how much of a disk of that size, in bytes, is not for what statements write beside the tables.
func Reserve(total uint64) int64 { return int64(min(total/10, reserveMost)) }

// Disk is the space that the temporary files of a node may take together, in bytes. It is safe for concurrent use.
//
// Commits come first: the last GiB of the disk, or tenth of a small one, is not for temporary files. An owner, the account of the
// sessions, may have as much as it leaves to all else, so that one whose statements write without end leaves room for others', as
// with memory (see [Budget]).
type Disk struct {
	// Space tells the size of the disk and what is free of it; nil: nobody knows before it is full.
	Space func() (total, free uint64)

	limit, ownerLimit atomic.Int64
	used              atomic.Int64
	refused           atomic.Uint64
}

// SetLimit changes what all files may take together (max_tmp_total_space_usage); 0 is no limit.
func (d *Disk) SetLimit(n int64) { d.limit.Store(n) }

// SetOwnerLimit changes what those of one owner may (trireme_tmp_account_space_usage); 0 is no limit.
func (d *Disk) SetOwnerLimit(n int64) { d.ownerLimit.Store(n) }

// Used is what temporary files take now.
func (d *Disk) Used() int64 { return d.used.Load() }

// Refused counts blocks that were not written for want of space that they might have: each has ended a statement.
func (d *Disk) Refused() uint64 { return d.refused.Load() }

// DiskOwner is what the sessions of one account take together.
type DiskOwner struct{ used atomic.Int64 }

// DiskShare is what one session takes of a disk. It belongs to one task.
type DiskShare struct {
	Disk  *Disk
	Owner *DiskOwner // nil: the session is one by itself
	// Limit is what the session may take (max_tmp_session_space_usage); 0: as much as there is.
	Limit int64

	own         DiskOwner
	used, taken int64 // taken of the disk, in grains
}

func (s *DiskShare) owner() *DiskOwner {
	if s.Owner != nil {
		return s.Owner
	}
	return &s.own
}

// Take takes n bytes for what is no file of a statement's, or gives them back if n is negative. Error: as of a file's block.
func (s *DiskShare) Take(n int64) error {
	if n < 0 {
		s.give(-n)
		return nil
	}
	return s.take(n)
}

// take takes n bytes for a file. Error: 1114 with the limit that was met.
func (s *DiskShare) take(n int64) error {
	if s == nil || s.Disk == nil {
		return nil
	}
	if s.Limit != 0 && s.used+n > s.Limit {
		return s.refuse("of this session", s.Limit, "max_tmp_session_space_usage")
	}
	if s.used+n > s.taken {
		if err := s.grow((s.used + n - s.taken + diskGrain - 1) / diskGrain * diskGrain); err != nil {
			return err
		}
	}
	s.used += n
	return nil
}

// grow takes n bytes of the disk.
func (s *DiskShare) grow(n int64) error {
	d, o := s.Disk, s.owner()
	all, owned := d.used.Add(n), o.used.Add(n)
	err := s.fits(n, all, owned)
	if err != nil {
		d.used.Add(-n)
		o.used.Add(-n)
		return err
	}
	s.taken += n
	return nil
}

// fits checks n bytes that are counted already, in all and owned.
func (s *DiskShare) fits(n, all, owned int64) error {
	d := s.Disk
	if limit := d.ownerLimit.Load(); limit != 0 && owned > limit {
		return s.refuse("of this account", limit, "trireme_tmp_account_space_usage")
	}
	if limit := d.limit.Load(); limit != 0 && all > limit {
		return s.refuse("of this node", limit, "max_tmp_total_space_usage")
	}
	if d.Space == nil {
		return nil
	}
	total, free := d.Space()
	if total == 0 {
		return nil // it could not be asked
	}
	left := int64(free) - Reserve(total) - n
	if left < 0 || owned > diskModest && owned > left {
		d.refused.Add(1)
		return sqlerr.Newf(sqlerr.RecordFileFull, "The table '(temporary)' is full: of the %d bytes that are free on "+
			"this node's disk, temporary files of this account may take no more than the %d that it has. %s", free,
			owned-n, "Have the statement keep less, or make the disk larger.")
	}
	return nil
}

func (s *DiskShare) refuse(whose string, limit int64, setting string) error {
	s.Disk.refused.Add(1)
	return sqlerr.Newf(sqlerr.RecordFileFull, "The table '(temporary)' is full: temporary files %s may take %d bytes "+
		"(%s). %s", whose, limit, setting, "Raise it, or have the statement keep less.")
}

// give gives n bytes back.
func (s *DiskShare) give(n int64) {
	if s == nil || s.Disk == nil {
		return
	}
	s.used -= n
	if back := (s.taken - s.used) / diskGrain * diskGrain; back > 0 {
		s.taken -= back
		s.Disk.used.Add(-back)
		s.owner().used.Add(-back)
	}
}
