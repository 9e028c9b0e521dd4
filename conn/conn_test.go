package conn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

func TestMessagesAreMadeOfTextAndBytes(t *testing.T) {
	require.Equal(t, conn.Message{Type: conn.Text, Data: []byte("héllo")}, conn.TextMessage("héllo"))
	m, err := conn.JSONMessage(map[string]int{"id": 7})
	require.NoError(t, err)
	require.Equal(t, conn.TextMessage(`{"id":7}`), m)
	_, err = conn.JSONMessage(func() {})
	require.Error(t, err)
	b := []byte{0, 255}
	m = conn.BinaryMessage(b)
	require.Equal(t, conn.Message{Type: conn.Binary, Data: b}, m)
	require.Same(t, &b[0], &m.Data[0])
}
