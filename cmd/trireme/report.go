package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/backup"
)

const (
	// reportPatience is how long the group is told of a backup; reportEach is a call's part of it. A group that elects a leader
	// meanwhile hears it, and Kubernetes gives a job that it ends half a minute.
	reportPatience = 20 * time.Second
	reportEach     = 5 * time.Second
	reportAgain    = 500 * time.Millisecond
	// reportText is how much of an error it is told.
	reportText = 1000
)

// report tells the group how an attempt at a backup has ended that was to be kept: its metrics say so. The backup is what
// it is, whether or not the group hears of it.
func (a *admin) report(info *backup.Info, took time.Duration, failed error) {
	req := &triremev1.AdminReportBackupRequest{DurationUs: uint64(took.Microseconds())}
	if failed != nil {
		req.Error = strings.ToValidUTF8(adminError(a.addr, failed).Error(), "?")
		req.Error = strings.ToValidUTF8(req.Error[:min(len(req.Error), reportText)], "")
	} else {
		req.SizeBytes = uint64(info.Bytes())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), reportPatience) // one that was interrupted says so, too
	defer cancel()
	if err := a.reportTo(ctx, req); err != nil {
		fmt.Fprintf(os.Stderr, "trireme: the group was not told of this, so that its metrics know nothing of it: %v\n", adminError(a.addr, err))
	}
}

// reportTo asks the node that gave the backup, the leader that it names, and the other nodes, until one takes the report.
func (a *admin) reportTo(ctx context.Context, req *triremev1.AdminReportBackupRequest) error {
	all := append([]string{a.addr}, a.all...)
	for {
		var err error
		for i := 0; i < len(all); i++ {
			err = a.reportOnce(ctx, all[i], req)
			switch status.Code(err) {
			case codes.OK, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
				return err
			}
			if leader := adminDetail(err).GetLeaderAddress(); leader != "" && !slices.Contains(all[i+1:], leader) && !slices.Contains(all[:i], leader) {
				all = slices.Insert(all, i+1, leader)
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(reportAgain):
		}
	}
}

func (a *admin) reportOnce(ctx context.Context, addr string, req *triremev1.AdminReportBackupRequest) error {
	if addr != a.addr {
		if err := a.use(addr); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reportEach)
	defer cancel()
	_, err := a.client.ReportBackup(ctx, req)
	return err
}
