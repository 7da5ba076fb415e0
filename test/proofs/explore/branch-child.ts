import { serveTasks } from '../task-pool.js';
import { exploreBranch } from './branch.js';

serveTasks(exploreBranch);
