package send_test

import (
	"context"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// pinned returns a message for one session only.
func pinned(session uint64, data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: scene.Text(data), Session: session}
}

// keyed returns a message with a key.
func keyed(key, data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: scene.Text(data), Key: key}
}

// refuseFirst is an OnSession that fails in the first session.
func refuseFirst(_ context.Context, op *reconnect.Opening) error {
	if op.Session == 1 {
		return scene.ErrLost
	}
	return nil
}
