//go:build linux

package recipes_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// A result over the server's limit is shortened until the server accepts it, and says so. So the next command can run.
func TestAgentShortensResult(t *testing.T) {
	for name, limit := range map[string]int64{
		"the default of coder/websocket": 32 << 10,
		"half of that":                   16 << 10,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, token := filepath.Join(dir, "do.sh"), filepath.Join(dir, "token")
			// The script prints quotation marks, for each of which JSON needs two bytes.
			require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
head -c 100000 /dev/zero | tr '\0' '"'
exit 7
`), 0o700))
			require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
			results := make(chan []byte, 10)
			url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
				c.SetReadLimit(limit)
				c.Read(ctx) // the login
				send(ctx, c, `{"Op":"welcome"}`, `{"Op":"run","ID":1,"Text":"list"}`)
				for id := 1; id <= 2; id++ {
					_, m, err := c.Read(ctx)
					if err != nil {
						return // coder/websocket has closed with 1009
					}
					results <- m
					send(ctx, c, `{"Op":"run","ID":2,"Text":"list"}`)
				}
				drain(ctx, c)
			})
			p := start(t, "agent", "-url", url, "-dir", dir, "-token", token, "-do", script, "-logins", "6")
			for id := range uint64(2) {
				var m struct {
					ID   uint64
					Text string
				}
				require.NoError(t, json.Unmarshal(<-results, &m))
				require.Equal(t, id+1, m.ID)
				require.Regexp(t, `^"+ \.\.\. \(omitting \d+ bytes\) \.\.\. "+ \(error: exit status 7\)$`, m.Text)
			}
			p.Await("session ready")
			t.Logf("%d logins", strings.Count(p.String(), "session ready"))
			p.Interrupt()
			require.Zero(t, p.ExitCode())
		})
	}
}
