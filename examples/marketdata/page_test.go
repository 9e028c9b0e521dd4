//go:build !js

package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
	"github.com/redial-go/redial/reconnect/debug"
)

func TestThePageShowsTheDrill(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-page", ":0")
	url := p.Find(`(?m)^page: (http://127\.0\.0\.1:\d+/)$`)[1]
	p.Await("VENUE")
	var got debug.Snapshot
	require.Eventually(t, func() bool {
		resp, err := http.Get(url + "?json")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		got = debug.Snapshot{}
		return json.NewDecoder(resp.Body).Decode(&got) == nil && len(got.Conns) == 1 && got.Conns[0].Session > 0
	}, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, "feed", got.Conns[0].Name)
	require.NotNil(t, got.Conns[0].Subscriptions)
	require.Equal(t, "Books", got.Values[0].Name)
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p) // the drill was not over
}

func TestAWrongAddressOfThePageIsNamed(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-page", "nonsense")
	require.Equal(t, 2, p.ExitCode(), p)
	require.Contains(t, p.String(), `marketdata: -page: debug: the address "nonsense" has not the form host:port`)
}
