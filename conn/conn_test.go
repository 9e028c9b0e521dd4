package conn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

func TestMessagesAreMadeOfTextAndBytes(t *testing.T) {
	require.Equal(t, conn.Message{Type: conn.Text, Data: []byte("héllo")}, conn.TextMessage("héllo"))
	b := []byte{0, 255}
	m := conn.BinaryMessage(b)
	require.Equal(t, conn.Message{Type: conn.Binary, Data: b}, m)
	require.Same(t, &b[0], &m.Data[0])
}
