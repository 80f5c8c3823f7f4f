import { useMutation } from "@tanstack/react-query";
import { changeMigration, doWithMigration } from "../../api/actions";
import { useToasts } from "../dialogs/toasts";
import type { Control } from "./controls";

/**
 * Changes a running migration, and tells how that went.
 *
 * @param vm names the VM, where the page is not of its migration.
 */
export function useChange(id: string, vm?: string) {
  const toasts = useToasts();
  const of = vm === undefined ? "" : ` of ${vm}`;
  return useMutation({
    mutationFn: ({ control, value }: { control: Control; value: string }) =>
      control.do
        ? doWithMigration(id, control.do)
        : changeMigration(id, { [control.set?.tunable ?? ""]: value }),
    onSuccess: (_record, { control, value }) =>
      toasts.done(control.do ? `${control.action}: done` : `${control.label}${of} is ${value} now`),
    onError: (error, { control }) => toasts.failed(`${control.action}${of}: not done`, error),
  });
}
