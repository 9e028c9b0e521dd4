package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHAProxySaysWhyItDoesNotStart(t *testing.T) {
	if _, err := FindHAProxy(); err != nil {
		t.Skip(err)
	}
	h, err := startHAProxy("nonsense", "127.0.0.1:1", 1)
	require.NoError(t, err)
	defer h.end()
	require.ErrorContains(t, h.await(t.Context(), oneServer), "haproxy has ended: ")
}
