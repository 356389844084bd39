package bodies

import (
	"context"
	"errors"

	"github.com/triremedb/trireme/replication/transport"
)

// errStranger answers a node that is no member.
var errStranger = errors.New("bodies: only members have large transactions")

// HandleAsk answers a question of a member if it is one of this package.
func (s *Store) HandleAsk(from uint64, kind string, payload []byte) (answer []byte, handled bool, err error) {
	switch kind {
	case askOffer, askHave, askWant:
		if from == 0 {
			return nil, true, errStranger
		}
	}
	switch kind {
	case askOffer:
		return nil, true, s.offered(from, payload)
	case askWant:
		return nil, true, s.asked(from, payload)
	case askHave:
		again, err := s.heard(from, payload)
		if again {
			return []byte{1}, true, err
		}
		return []byte{0}, true, err
	}
	return nil, false, nil
}

// HandleBulk answers a request of a member if it is one of this package.
func (s *Store) HandleBulk(ctx context.Context, from uint64, kind string, payload []byte, w transport.BulkWriter) (handled bool, err error) {
	switch kind {
	case bulkStream, bulkBody:
		if from == 0 {
			return true, errStranger
		}
	}
	switch kind {
	case bulkStream:
		return true, s.stream(ctx, from, payload, w)
	case bulkBody:
		return true, s.serve(ctx, payload, w)
	}
	return false, nil
}
