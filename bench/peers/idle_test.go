package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// herd are clients whose server sends so many messages when one of them asks for it.
type herd struct {
	woken *woken
	sends int
}

func (h *herd) Send(p []byte) error {
	if len(p) != 1 || p[0] != askWake {
		return errors.New("another order")
	}
	for range h.sends {
		h.woken.take(nil)
	}
	return nil
}

func (h *herd) Close() {}

func TestOneMessageToEachConnectionShowsThatAllAreAlive(t *testing.T) {
	h := &herd{woken: newWoken(), sends: 3}
	_, err := h.woken.wake(t.Context(), []client{h, h, h})
	require.NoError(t, err)
}

func TestAConnectionThatIsNotAliveIsAnError(t *testing.T) {
	h := &herd{woken: newWoken(), sends: 2}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := h.woken.wake(ctx, []client{h, h, h})
	require.EqualError(t, err, "wait for a message to each of 3 connections: enough, when 2 had come")
}
