//go:build !js

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
	"github.com/redial-go/redial/reconnect/debug"
)

func TestThePageShowsTheRoom(t *testing.T) {
	t.Parallel()
	server := program.Start(t, "serve", "-addr", "127.0.0.1:0", "-page", ":0")
	page := server.Find(`(?m)^page: (http://127\.0\.0\.1:\d+/)$`)[1]
	room := server.Find(`serving (ws://\S+)`)[1]
	member := program.Start(t, "join", "-url", room, "-name", "ann", "-page", "127.0.0.1:0")
	own := member.Find(`page: (http://127\.0\.0\.1:\d+/)`)[1]
	server.Await("ann is here")
	got := snapshot(t, page)
	require.Equal(t, "Room", got.Values[0].Name)
	require.Equal(t, debug.Value{Name: "members", Text: "1"}, got.Values[0].Values[0])
	got = snapshot(t, own)
	require.Equal(t, "ann", got.Conns[0].Name)
	require.Equal(t, "Lines", got.Values[0].Name)
	member.Interrupt()
	require.Zero(t, member.ExitCode(), member)
	server.Interrupt()
	require.Zero(t, server.ExitCode(), server)
}

func snapshot(t *testing.T, url string) (got debug.Snapshot) {
	resp, err := http.Get(url + "?json")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
	return got
}

func TestAWrongAddressOfThePageIsNamed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve -addr 127.0.0.1:0", "join"} {
		p := program.Start(t, strings.Fields(command+" -page nonsense")...)
		require.Equal(t, 2, p.ExitCode(), p)
		require.Contains(t, p.String(), `-page: debug: the address "nonsense" has not the form host:port`)
	}
}
