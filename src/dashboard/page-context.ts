import type { Request, Response } from 'express';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { readGatewayFacts } from '../ledger/reads/gateway-facts.js';
import type { ApprovalView } from '../control/approvals/approvable-payout.js';
import { describeEvidence } from '../operator/describe-look-up.js';
import type { ControlFiles } from './control/control-files.js';
import type { Site } from './layout/layout.js';
import type { Shown } from './layout/pieces.js';
import { messagePage } from './respond.js';

/** What the pages of one account share. */
export class PageContext {
  readonly ledger: PayoutLedger;
  readonly files: ControlFiles;
  readonly explorers: ReadonlyMap<number, string>;
  readonly site: (request: Request) => Site;

  constructor(
    ledger: PayoutLedger,
    files: ControlFiles,
    explorers: ReadonlyMap<number, string>,
    site: (request: Request) => Site,
  ) {
    this.ledger = ledger;
    this.files = files;
    this.explorers = explorers;
    this.site = site;
  }

  get connection(): LedgerConnection {
    return this.ledger.connection;
  }

  /** Verifies signatures as of a time (wall clock, ms); undefined without a keyring. */
  viewAt(now: number): ApprovalView | undefined {
    const { platformId } = this.connection;
    const keyring = this.files.keyringOf(platformId);
    return keyring && { platformId, keyring, now };
  }

  async shown(): Promise<Shown> {
    const facts = await readGatewayFacts(this.connection);
    const { currencies } = facts;
    return {
      currencies,
      lookUpEvidence: describeEvidence(facts),
      explorers: this.explorers,
      wallNow: this.connection.clock.wallNow(),
    };
  }

  notFound(request: Request, response: Response, text: string): void {
    response.status(404).send(messagePage(this.site(request), { title: 'Not found', text }));
  }
}
