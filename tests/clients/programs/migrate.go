// Migrate a VM with the client that oapi-codegen generated.
//
//	migrate URL TOKEN VM DESTINATION
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"example.org/migrate/vmtune"
	"github.com/google/uuid"
)

func main() {
	url, token, vm, destination := os.Args[1], os.Args[2], uuid.MustParse(os.Args[3]), os.Args[4]
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := vmtune.NewClientWithResponses(url, vmtune.WithRequestEditorFn(bearer))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	key := uuid.NewString()

	refused, err := client.StartMigrationWithResponse(ctx, nil,
		vmtune.MigrationCreate{Vm: vm, Destination: "nowhere"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(refused.ApplicationproblemJSON404.Errors[0].Code)

	var made *vmtune.MigrationView
	for range 2 { // a repeated request begins nothing more
		answer, err := client.StartMigrationWithResponse(ctx,
			&vmtune.StartMigrationParams{IdempotencyKey: &key},
			vmtune.MigrationCreate{Vm: vm, Destination: destination})
		if err != nil {
			log.Fatal(err)
		}
		if answer.JSON202 == nil {
			log.Fatal(string(answer.Body))
		}
		made = answer.JSON202
		fmt.Println(made.Id)
	}
	for {
		switch made.State {
		case vmtune.MigrationStateCOMPLETED, vmtune.MigrationStateFAILED, vmtune.MigrationStateCANCELLED:
			fmt.Println(made.State)
			return
		}
		time.Sleep(200 * time.Millisecond)
		found, err := client.GetMigrationWithResponse(ctx, made.Id)
		if err != nil || found.JSON200 == nil {
			log.Fatal(err, string(found.Body))
		}
		made = found.JSON200
	}
}
