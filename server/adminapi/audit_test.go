package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// audited is the line that a call leaves, and its arguments.
func audited(t *testing.T, r right, req proto.Message) (line string, arguments map[string]any) {
	t.Helper()
	var out bytes.Buffer
	s := New(Options{Audit: slog.New(slog.NewJSONHandler(&out, nil))})
	s.audit(context.Background(), r, &Caller{User: "u", AccountUser: "u", AccountHost: "%"}, req, "refused")
	var l struct {
		Audit struct{ Arguments map[string]any }
	}
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	return out.String(), l.Audit.Arguments
}

// However a setting is spelled that holds a secret, its value is in no line.
func TestAuditHidesSecrets(t *testing.T) {
	for _, name := range []string{"etcd_password", "ETCD_Password", "etcd-password", "Initial-Root-Password"} {
		line, arguments := audited(t, rightSet, &triremev1.AdminSetSettingRequest{Name: name, Value: "hush"})
		if strings.Contains(line, "hush") || arguments["name"] != name || arguments["value"] != hidden {
			t.Errorf("%s: %s", name, line)
		}
	}
	if _, arguments := audited(t, rightSet, &triremev1.AdminSetSettingRequest{Name: "max-connections", Value: "7"}); arguments["value"] != "7" {
		t.Errorf("of a setting that is none: %v", arguments)
	}
}

// A request that is longer than any that makes sense leaves its length, and not itself: who sends it may have no privilege at all.
func TestAuditIsBounded(t *testing.T) {
	long := strings.Repeat("\x01", 1<<20)
	for r, req := range map[*right]proto.Message{
		&rightSet:    &triremev1.AdminSetSettingRequest{Name: "init_connect", Value: long},
		&rightAdd:    &triremev1.AdminAddMemberRequest{Id: 7, PeerAddress: long},
		&rightReport: &triremev1.AdminReportBackupRequest{Error: long},
		&rightPurge:  &triremev1.AdminPurgeBinlogsRequest{To: long},
	} {
		line, arguments := audited(t, *r, req)
		if len(line) > 1000 || arguments["bytes"] != float64(proto.Size(req)) {
			t.Errorf("%s: %d bytes, %.200q", r.call, len(line), line)
		}
	}
	if line, arguments := audited(t, rightSet, &triremev1.AdminSetSettingRequest{Name: strings.Repeat("n", 64), Value: strings.Repeat("v", settingMax)}); len(arguments["value"].(string)) != settingMax {
		t.Errorf("of the longest setting: %.200q", line)
	}
}
