import { startGateway } from './gateway.js';
import { openStage } from './stage.js';

export type Rig = Awaited<ReturnType<typeof openRig>>;

/** The stage of all cells, and the gateway of those that need none of their own. */
export async function openRig() {
  const stage = await openStage();
  const gateway = await startGateway(stage).catch(async (error: unknown) => {
    await stage.close();
    throw error;
  });
  return {
    ...{ stage, gateway },
    async close() {
      await gateway.close();
      await stage.close();
    },
  };
}
