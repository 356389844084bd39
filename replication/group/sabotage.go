package group

import (
	"context"

	"github.com/triremedb/trireme/replication/commit"
)

// hasty is a pipeline whose sessions do not wait for the commits that they depend on.
type hasty struct{ *commit.Pipeline }

// WaitFinished implements txn.CommitLog.
func (hasty) WaitFinished(context.Context, uint64, func() error) error { return nil }
