package run_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A server that challenges: its 401 names a nonce, without which it accepts no connection. Its 101 names a node.
func TestPrepareAnswersChallengeOfServer(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		accept := func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Nonce abc" {
				conntest.Status(401, http.Header{"Www-Authenticate": {"abc"}})(w, r)
				return
			}
			w.Header().Set("Set-Cookie", "node=7")
			server.Accept(w, r)
		}
		server.Next(accept, accept, accept, accept)
		var causes []error
		server.Dialer.Prepare = func(ctx context.Context, r *dialer.Request) error {
			err := backoff.AttemptFrom(ctx).Err
			causes = append(causes, err)
			if rejected, ok := errors.AsType[*dialer.Error](err); ok {
				r.Header.Set("Authorization", "Nonce "+rejected.Header.Get("WWW-Authenticate"))
			}
			return nil
		}
		var openings []string
		c := server.Open(t, &reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			openings = append(openings, http.Header(o.Header).Get("Set-Cookie"))
			return nil
		}})
		require.NoError(t, c.AwaitReady(t.Context()))
		c.Redial(1, scene.ErrLost)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"node=7", "node=7"}, openings)
		require.Len(t, causes, 4)
		require.NoError(t, causes[0])
		require.ErrorIs(t, causes[2], scene.ErrLost, "why the session ended")
	})
}
