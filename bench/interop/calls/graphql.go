package calls

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// Subprotocol is that of the WebSocket for [GraphQL].
const Subprotocol = "graphql-transport-ws"

// GraphQL asks a server that speaks the protocol of graphql-ws. The client chooses the ids. A
// server ends the connection (4409) if an id is used that it still works on.
type GraphQL struct {
	Calls *call.Client[string] // whose Layer belongs into the Options of a Conn
}

// frame is a message of the protocol.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// NewGraphQL returns a GraphQL, ready for a Conn.
func NewGraphQL() (*GraphQL, error) {
	client, err := call.New(&call.Options[string]{ID: func(m reconnect.Message) (string, bool) {
		var f frame
		if json.Unmarshal(m.Data, &f) != nil {
			return "", false
		}
		return f.ID, f.Type == "next" || f.Type == "error" // "complete" follows a "next"
	}})
	return &GraphQL{client}, err
}

// Init is for Options.OnSession: it begins a session of the protocol.
func (g *GraphQL) Init(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(conn.TextMessage(`{"type":"connection_init"}`)); err != nil {
		return err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(m.Data, &f); err != nil {
			return err
		}
		if f.Type == "connection_ack" {
			return nil
		}
	}
}

// Ask returns the data of a query, whose id is the caller's. With again it is asked again if the
// connection is lost.
func (g *GraphQL) Ask(ctx context.Context, again bool, id, query string, variables map[string]any) (json.RawMessage, error) {
	payload, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	question, err := json.Marshal(frame{id, "subscribe", payload})
	if err != nil {
		return nil, err
	}
	m, err := g.Calls.Do(ctx, call.Request[string]{ID: id, Message: conn.Message{Type: conn.Text, Data: question}, Repeatable: again})
	if err != nil {
		return nil, err
	}
	var f frame
	if err := json.Unmarshal(m.Data, &f); err != nil {
		return nil, err
	}
	if f.Type == "error" {
		return nil, fmt.Errorf("refused: %s", f.Payload)
	}
	var result struct {
		Data   json.RawMessage `json:"data"`
		Errors json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(f.Payload, &result); err != nil {
		return nil, err
	}
	if result.Errors != nil {
		return nil, fmt.Errorf("failed: %s", result.Errors)
	}
	return result.Data, nil
}
