package adminapi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/config"
)

// hidden stands for a secret.
const hidden = "********"

// secret reports whether a setting, as a caller spells it, holds a secret.
func secret(name string) bool {
	c := config.Find(settingName(name))
	return c != nil && c.Secret
}

// settingName is the name of a setting that a caller may write as options are.
func settingName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// ListSettings implements the contract.
func (s *Server) ListSettings(ctx context.Context, req *triremev1.AdminListSettingsRequest) (*triremev1.AdminListSettingsResponse, error) {
	return serve(ctx, s, rightSettings, req, func(c *Caller) (*triremev1.AdminListSettingsResponse, error) {
		all, err := s.settings()
		if err != nil {
			return nil, err
		}
		hidesAudit := s.opt.Sessions.Needs(c.id(), 0, session.AuditPrivilege) != nil
		like := strings.ToLower(req.GetLike())
		all = slices.DeleteFunc(all, func(x *triremev1.AdminSetting) bool {
			return like != "" && !priv.Like(like, x.GetName()) || hidesAudit && ofAudit(x) ||
				req.GetChangedOnly() && x.GetOrigin() == triremev1.AdminOrigin_ADMIN_ORIGIN_DEFAULT
		})
		if slices.ContainsFunc(all, ofAudit) {
			r := rightSettings
			r.change = true // as in SQL, who looks at them is in the log
			s.audit(ctx, r, c, req, "done")
		}
		return &triremev1.AdminListSettingsResponse{Settings: all}, nil
	})
}

// ofAudit reports whether a setting says what is in the audit log: only with session.AuditPrivilege it is seen.
func ofAudit(x *triremev1.AdminSetting) bool { return strings.HasPrefix(x.GetName(), "audit_log") }

// settings lists all of them: the node's configuration, over which global variables and the
// group's settings of the same name go where they can differ.
func (s *Server) settings() ([]*triremev1.AdminSetting, error) {
	cfg := s.opt.Config
	all := map[string]*triremev1.AdminSetting{}
	origin := func(x *triremev1.AdminSetting) {
		x.Origin = triremev1.AdminOrigin_ADMIN_ORIGIN_DEFAULT
		if x.OriginDetail = cfg.Origin(x.Name); x.OriginDetail != "" {
			x.Origin = triremev1.AdminOrigin_ADMIN_ORIGIN_CONFIGURATION
		}
	}
	for i := range config.Sections {
		for j := range config.Sections[i].Settings {
			of := &config.Sections[i].Settings[j]
			x := &triremev1.AdminSetting{Name: of.Name, Value: cfg.String(of.Name), DefaultValue: of.DefaultText(),
				Scope: triremev1.AdminScope_ADMIN_SCOPE_NODE, Description: of.Doc}
			if of.Secret && x.Value != "" {
				x.Value = hidden
			}
			origin(x)
			all[of.Name] = x
		}
	}
	for _, g := range s.opt.Sessions.Globals() {
		x := all[g.Name]
		if x != nil && !g.Changeable {
			continue
		}
		if x == nil {
			x = &triremev1.AdminSetting{Name: g.Name}
			origin(x)
			all[g.Name] = x
		}
		x.Value, x.DefaultValue, x.Scope, x.Changeable = g.Value, g.Default, triremev1.AdminScope_ADMIN_SCOPE_VARIABLE, g.Changeable
		if g.Origin == session.OriginSet {
			x.Origin, x.OriginDetail = triremev1.AdminOrigin_ADMIN_ORIGIN_SET_GLOBAL, ""
		}
	}
	group, err := s.opt.Group.Settings()
	if err != nil {
		return nil, err
	}
	for _, g := range group {
		x := all[g.Name]
		if x == nil {
			x = &triremev1.AdminSetting{Name: g.Name}
			origin(x)
			all[g.Name] = x
		}
		x.Value, x.Scope, x.Changeable = strconv.FormatInt(g.Value, 10), triremev1.AdminScope_ADMIN_SCOPE_GROUP, true
		if g.Changed {
			x.Origin, x.OriginDetail = triremev1.AdminOrigin_ADMIN_ORIGIN_GROUP, ""
		}
	}
	list := make([]*triremev1.AdminSetting, 0, len(all))
	for _, x := range all {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *triremev1.AdminSetting) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

const settingMax = 64 << 10

// SetSetting implements the contract.
func (s *Server) SetSetting(ctx context.Context, req *triremev1.AdminSetSettingRequest) (*triremev1.AdminSetSettingResponse, error) {
	return serve(ctx, s, rightSet, req, func(c *Caller) (*triremev1.AdminSetSettingResponse, error) {
		name := settingName(req.GetName())
		if name == "" || len(name) > 64 || len(req.GetValue()) > settingMax {
			return nil, badArgument("a setting has a name, and a value of 64 KiB at most")
		}
		before, err := s.setting(name)
		if err != nil {
			return nil, err
		}
		if before.GetScope() == triremev1.AdminScope_ADMIN_SCOPE_NODE {
			return nil, refused("set it where the node is configured, and restart the node", "%s cannot be changed while the node runs", name)
		}
		if before.GetScope() == triremev1.AdminScope_ADMIN_SCOPE_GROUP {
			if err := s.lead(); err != nil {
				return nil, err
			}
		}
		if _, err := s.query(ctx, c, "SET GLOBAL "+catalog.QuoteName(name)+" = "+settingText(req.GetValue()), 0); err != nil {
			return nil, err
		}
		after, err := s.setting(name)
		return &triremev1.AdminSetSettingResponse{Setting: after}, err
	})
}

// setting finds one. Error: there is none.
func (s *Server) setting(name string) (*triremev1.AdminSetting, error) {
	all, err := s.settings()
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.GetName() == name {
			return x, nil
		}
	}
	return nil, &Error{Code: codes.NotFound, Number: sqlerr.UnknownSystemVariable,
		Message: "there is no setting " + strconv.Quote(types.CutUTF8(name, 64)), Advice: "the settings' list has the names"}
}

// settingText is a value in SQL: a number as it is, else a string.
func settingText(value string) string {
	if strings.EqualFold(value, "DEFAULT") {
		return "DEFAULT"
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return value
	}
	if _, err := strconv.ParseUint(value, 10, 64); err == nil {
		return value
	}
	whole, part, point := strings.Cut(value, ".")
	digits := func(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
	if point && digits(whole) && digits(part) {
		return value
	}
	return quote(value)
}

// quote is a text as a literal of SQL, whatever sql_mode says of backslashes.
func quote(text string) string { return "_utf8mb4 X'" + hexText(text) + "'" }

func hexText(text string) string {
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, 2*len(text))
	for i := range len(text) {
		b = append(b, digits[text[i]>>4], digits[text[i]&15])
	}
	return string(b)
}
